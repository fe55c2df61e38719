import type { SessionState } from './agent-state';
import type { SessionSummary } from './read-models';

/** Whether its agent's process has ended. */
export function hasEnded({ observations }: Pick<SessionSummary, 'observations'>): boolean {
  return observations.process !== undefined;
}

type OpenWork = Pick<SessionSummary, 'observations' | 'openTurnId' | 'runningTaskCount' | 'pendingRequestCount'>;

/** Whether something is going on in it whose end its runner would have to tell. */
export function isUnderWay(session: OpenWork): boolean {
  if (hasEnded(session)) return false;
  return session.openTurnId !== null || session.runningTaskCount > 0 || session.pendingRequestCount > 0;
}

const AT_WORK: ReadonlySet<SessionState> = new Set(['working', 'needs-input', 'waiting-on-background']);

/** Whether a session in this state is in the middle of something. */
export function isAtWork(state: SessionState): boolean {
  return AT_WORK.has(state);
}

/** Whether it went silent in the middle of something. */
export function isLost({ state, evidence }: Pick<SessionSummary, 'state' | 'evidence'>): boolean {
  return state === 'unknown' && evidence.last !== undefined && isAtWork(evidence.last);
}

/** Whether its process has failed: it was killed, or ended with a code other than 0. */
export function hasBrokenOff({ state, observations }: Pick<SessionSummary, 'state' | 'observations'>): boolean {
  const exit = observations.process?.value;
  return state === 'exited' && exit !== undefined && (exit.signal !== null || (exit.code ?? 0) !== 0);
}

/** Whether somebody has looked at how it stands. */
export function isSeen({ arrangement, stateSince }: Pick<SessionSummary, 'arrangement' | 'stateSince'>): boolean {
  return arrangement.seenState === stateSince;
}
