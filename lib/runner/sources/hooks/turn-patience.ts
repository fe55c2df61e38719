import type { PendingStop } from '../../adapters/claude/stop-hooks';

/** How long the transcript must be still after the last hook of a turn, before the turn is held to be over. */
const STILL_MS = 1_500;
/**
 * How long a turn is held for the text that its stop hook brought and the transcript has not: past it the hook's word
 * is taken. Shorter, once the next prompt was heard of. Longer, where the hook brought none: only the transcript has
 * it.
 */
const LAST_LINE_MS = { most: 5_000, prompted: 3_000, wordless: 12_000 };
/**
 * How long a turn is held whose lines are behind those of a hook of a later one: the transcript has them, and brings
 * them before that. And how long such a hook waits for its turn.
 */
const BEHIND_MS = 90_000;
/** How long a session that has ended may still write. */
const LAST_WORDS_MS = { still: 500, most: 3_000 };
/**
 * For this long `busy` without an open turn, or nothing behind a turn's last word: the hook that would have said idle
 * was killed, or nobody was there to hear it. Ours takes 2 s at most.
 */
const STUCK_MS = 5_000;
/** How long what a stop hook answered may take to reach the transcript: other people's hooks run beside it. */
const HELD_MS = 70_000;

/** What is known of a session at a look. Epoch milliseconds. */
export interface Stillness {
  now: number;
  lastLineAt: number;
  /** When the agent said last what it does. */
  reportedAt: number;
  /** When the session was left; null if it goes on. */
  leftAt: number | null;
  /** The stop hook's word is not in the transcript; or it brought none, and nothing there ends the turn. */
  lacksLastWords: boolean;
  /** A stop hook's answer is on its way to the agent. */
  isHeld: boolean;
  /** Since when such an answer to the open turn's hook has been looked for; null for none. */
  heldSince: number | null;
  /** When the transcript said last that one reached the agent: what follows it is behind by as much. */
  handedAt: number;
}

/** Whether a session that was left has said all it had to say, or has had its time. */
export function isLeftForGood({ now, lastLineAt, leftAt, lacksLastWords, heldSince }: Stillness): boolean {
  if (leftAt === null) return false;
  const isStill = now - Math.max(lastLineAt, leftAt) >= LAST_WORDS_MS.still;
  const hasSaid = isStill && !lacksLastWords && heldSince === null;
  return hasSaid || now - leftAt >= LAST_WORDS_MS.most;
}

/** A command is over once the transcript has been still for long enough to hold its output. */
export function isCommandOver({ now, lastLineAt, reportedAt }: Stillness): boolean {
  return now - Math.max(lastLineAt, reportedAt) >= STILL_MS;
}

/** Whether the turn goes on by an answer of our stop hook that the transcript has not come to. */
function isStillHeld({ now, heldSince, leftAt }: Stillness): boolean {
  return heldSince !== null && leftAt === null && now - heldSince < HELD_MS;
}

/** Whether the turn whose stop hook ran has said all it had to say, or has had its time. */
export function isTurnOver({ heardAt, promptedAt, text, failure }: PendingStop, still: Stillness): boolean {
  const { now, lastLineAt, leftAt, lacksLastWords, handedAt } = still;
  if (isStillHeld(still)) return false;
  if (!lacksLastWords) return isLeftForGood(still) || now - Math.max(lastLineAt, heardAt) >= STILL_MS;
  const since = Math.max(heardAt, handedAt);
  if (promptedAt !== null && now - Math.max(promptedAt, since) >= LAST_LINE_MS.prompted) return true;
  const most = text === null && failure === null ? LAST_LINE_MS.wordless : LAST_LINE_MS.most;
  return (leftAt !== null && now - leftAt >= LAST_WORDS_MS.most) || now - since >= most;
}

/** Whether the transcript would have come to the hook's turn by now. What the hook itself does not say is not sure. */
export function isTurnLost({ heardAt, isClocked, promptId }: PendingStop, still: Stillness): boolean {
  const { now } = still;
  if (isStillHeld(still)) return false;
  return now - heardAt >= (isClocked || promptId !== null ? BEHIND_MS : LAST_LINE_MS.most);
}

/**
 * Whether the hook that ends a turn which has said its last word would have been heard by now, and whether an agent
 * that said it was busy would have begun a turn.
 */
export function isStuck({ now, lastLineAt, reportedAt, isHeld }: Stillness): boolean {
  return now - Math.max(reportedAt, lastLineAt) >= (isHeld ? HELD_MS : STUCK_MS);
}
