const DEFAULT_MINUTES = 15;
const MINUTE_MS = 60_000;
/** Unless it is set otherwise. */
export const REPLY_OVERDUE_MS = DEFAULT_MINUTES * MINUTE_MS;
/** A year: no reply waits longer, and every time stays a safe number. */
const MOST_MINUTES = 525_600;

/** How long a reply may be owed, as the environment says. A value that makes no sense is logged and ignored. */
export function replyOverdueMs(env: Record<string, string | undefined>): number {
  const text = env.INTERLUDE_REPLY_OVERDUE_MINUTES;
  if (text === undefined || text === '') return REPLY_OVERDUE_MS;
  const minutes = Number(text);
  if (minutes > 0 && minutes <= MOST_MINUTES) return minutes * MINUTE_MS;
  console.error(
    `[interlude] INTERLUDE_REPLY_OVERDUE_MINUTES=${text} is not a number above 0 and up to ${MOST_MINUTES}; replies are overdue after ${DEFAULT_MINUTES} minutes. Set it to one, or leave it out.`,
  );
  return REPLY_OVERDUE_MS;
}
