import type { SessionList, SessionSummary } from '@/lib/protocol/read-models';

const lapsed = new WeakMap<SessionSummary, SessionSummary>();

/**
 * A session as it is when the time of the one request it waits for is over, though nobody has said so: as that request
 * itself is shown. The same for the same one, whenever it is looked at. Of several only the server knows the others' times.
 *
 * @param passed a time of the server's clock that has passed
 */
export function lapse(session: SessionSummary, passed: number): SessionSummary {
  const { state, away, answerBy, pendingRequestCount, openTurnId } = session;
  const asksOne = state === 'waiting' && away === null && pendingRequestCount === 1;
  if (!asksOne || answerBy === undefined || answerBy > passed) return session;
  const found = lapsed.get(session) ?? {
    ...session,
    state: openTurnId === null ? 'idle' : 'working',
    stateReason: null,
    stateSince: answerBy,
    pendingRequestCount: 0,
  };
  lapsed.set(session, found);
  return found;
}

/** The same for all of a list, and for how many there are of each state. */
export function lapseAll<List extends SessionList>(list: List, passed: number): List {
  const counts = { ...list.counts };
  const sessions = list.sessions.map((session) => {
    const now = lapse(session, passed);
    counts[session.state] -= 1;
    counts[now.state] += 1;
    return now;
  });
  return { ...list, sessions, counts };
}

/** The newest time that has passed at which one of these could be answered no more; 0 where none has. */
export function lastLapse(sessions: readonly SessionSummary[], now: number): number {
  return sessions.reduce((last, { answerBy = 0 }) => (answerBy <= now ? Math.max(last, answerBy) : last), 0);
}
