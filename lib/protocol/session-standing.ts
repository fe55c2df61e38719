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
