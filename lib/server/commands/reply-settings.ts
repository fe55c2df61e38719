import { MINUTE_MS } from '@interlude/protocol/limits';
import { numberSetting } from '@/lib/server/access/access-settings';

const DEFAULT_MINUTES = 15;
/** Unless it is set otherwise. */
export const REPLY_OVERDUE_MS = DEFAULT_MINUTES * MINUTE_MS;
/** A year: no reply waits longer, and every time stays a safe number. */
const MOST_MINUTES = 525_600;

/** How long a reply may be owed, as the environment says. */
export function replyOverdueMs(env: Record<string, string | undefined>): number {
  const minutes = numberSetting(env, 'INTERLUDE_REPLY_OVERDUE_MINUTES', {
    byDefault: DEFAULT_MINUTES,
    most: MOST_MINUTES,
    otherwise: `replies are overdue after ${DEFAULT_MINUTES} minutes`,
  });
  return minutes * MINUTE_MS;
}
