/**
 * Which turn answers which message of a person, as far as a session's fold has to know: a report of the agent counts once
 * it was made after every message, in the turn that answers it or a later one. Messages and turns count from 1.
 */
export interface MessageMemory {
  /** How many were written. */
  count: number;
  /** The newest that a turn has claimed, and the newest turn that has claimed one. */
  claimed: { message: number; turn: number };
  /** Those that none has claimed, oldest first, each with the turn that probably answers it. Bounded. */
  unclaimed: readonly { id: string; message: number; turn: number }[];
  /** The newest ids: one that is told again is no news. Bounded. */
  ids: readonly string[];
}

/** Most unclaimed messages that are remembered, and ids. */
const MAX_UNCLAIMED = 32;
const MAX_IDS = 64;

export const NO_MESSAGES: MessageMemory = {
  count: 0,
  claimed: { message: 0, turn: 0 },
  unclaimed: [],
  ids: [],
};

/**
 * A person has written.
 * @param turn the one that answers, or probably will
 * @param isClaimed whether that is certain
 */
export function withMessage(memory: MessageMemory, id: string, turn: number, isClaimed: boolean): MessageMemory {
  if (memory.ids.includes(id)) return memory;
  const message = memory.count + 1;
  const ids = [...memory.ids, id].slice(-MAX_IDS);
  const unclaimed = [...memory.unclaimed, { id, message, turn }].slice(-MAX_UNCLAIMED);
  const known = { ...memory, count: message, ids, unclaimed };
  return isClaimed ? withClaim(known, [id], turn, false) : known;
}

/**
 * A turn has said which messages it answers. Messages are taken in order, so it has those before them, too.
 * @param isAll whether it answers no others, even if it names none
 */
export function withClaim(memory: MessageMemory, ids: readonly string[], turn: number, isAll: boolean): MessageMemory {
  const named = memory.unclaimed.findLast(({ id }) => ids.includes(id));
  const answersOthers = isAll || ids.length > 0;
  const left = memory.unclaimed
    .filter(({ message }) => named === undefined || message > named.message)
    .map((one) => (answersOthers && one.turn === turn ? { ...one, turn: turn + 1 } : one));
  const { claimed } = memory;
  const now = { message: Math.max(claimed.message, named?.message ?? 0), turn: Math.max(claimed.turn, turn) };
  return { ...memory, claimed: named === undefined ? claimed : now, unclaimed: left };
}

/** A message never reached the agent: nobody answers it. */
export function withoutMessage(memory: MessageMemory, id: string): MessageMemory {
  return { ...memory, unclaimed: memory.unclaimed.filter((one) => one.id !== id) };
}

/** The turn that answers the last of them. */
export function answeringTurn({ claimed, unclaimed }: MessageMemory): number {
  return Math.max(claimed.turn, ...unclaimed.map(({ turn }) => turn));
}

/** Whether somebody has written whom a report does not answer that was made in this turn, after so many messages. */
export function isUnanswered({ claimed, unclaimed }: MessageMemory, turn: number, after: number): boolean {
  return [claimed, ...unclaimed].some((one) => one.message > after || turn < one.turn);
}
