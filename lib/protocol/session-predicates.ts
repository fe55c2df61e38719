import type { SessionSummary } from './read-models';
import type { SessionState } from './session-states';

/** Whether its agent's process has ended. */
export function hasEnded({ observations }: Pick<SessionSummary, 'observations'>): boolean {
  return observations.process !== undefined;
}

type OpenWork = Pick<SessionSummary, 'observations' | 'openTurnId' | 'runningTaskCount' | 'pendingRequestCount'>;

/** Whether something is going on in it whose end its runner would have to tell. */
export function hasOpenWork(session: OpenWork): boolean {
  if (hasEnded(session)) return false;
  return session.openTurnId !== null || session.runningTaskCount > 0 || session.pendingRequestCount > 0;
}

const AT_WORK: ReadonlySet<SessionState> = new Set(['working', 'needs-input', 'waiting-on-background']);

/** Whether a session in this state is in the middle of something. */
export function isActiveState(state: SessionState): boolean {
  return AT_WORK.has(state);
}

const UNABLE: ReadonlySet<SessionState> = new Set(['needs-input', 'failed', 'exited']);

/** False while its agent can't reply: it waits for its operator, has failed or has exited. */
export function canReply({ state, evidence }: Pick<SessionSummary, 'state' | 'evidence'>): boolean {
  return !UNABLE.has(state === 'unknown' ? (evidence.last ?? state) : state);
}

/** Whether it went silent in the middle of something. */
export function wentSilent({ state, evidence }: Pick<SessionSummary, 'state' | 'evidence'>): boolean {
  return state === 'unknown' && evidence.last !== undefined && isActiveState(evidence.last);
}

/** Whether its process has failed: it was killed, or ended with a code other than 0. */
export function hasCrashed({ state, observations }: Pick<SessionSummary, 'state' | 'observations'>): boolean {
  const exit = observations.process?.value;
  return state === 'exited' && exit !== undefined && (exit.signal !== null || (exit.code ?? 0) !== 0);
}

type Standing = Pick<SessionSummary, 'state' | 'stateSince' | 'evidence' | 'observations'>;

/**
 * When the server learned of the failure in which it stands, or stood when it was last heard of: losing contact neither
 * ends nor renews it. Null if it did not fail.
 */
export function failedSince({ state, stateSince, evidence, observations }: Standing): number | null {
  if (state === 'failed' || hasCrashed({ state, observations })) return stateSince;
  const wasFailed = state === 'unknown' && evidence.last === 'failed';
  return wasFailed ? (lastFailure(observations) ?? stateSince) : null;
}

/**
 * When the server learned of the last failure it was told of: a report and a turn may both have told of one, and whoever
 * looks sees both, so that it stands though somebody has written since the report. Null if none was told.
 */
export function lastFailure({ report, turn }: SessionSummary['observations']): number | null {
  const reported = report?.value.state === 'failure' ? report.observedAt : null;
  const failed = turn?.value.state === 'failed' ? turn.observedAt : null;
  return reported === null || failed === null ? (reported ?? failed) : Math.max(reported, failed);
}

/** What is said of that failure. */
export function failureReason(session: Pick<SessionSummary, 'state' | 'stateReason' | 'observations'>): string | null {
  const { state, stateReason, observations } = session;
  if (state !== 'unknown') return stateReason;
  const { report, turn } = observations;
  return (reportsFailure(observations) ? report?.value.summary : turn?.value.message) ?? null;
}

function reportsFailure({ report }: SessionSummary['observations']): boolean {
  return report?.value.state === 'failure' && !report.isOutdated;
}

/** By what people say that they have looked at how it stands: when it came to that, or when it failed. */
export function reviewedSince(session: Standing): number {
  return failedSince(session) ?? session.stateSince;
}

/** Whether somebody has looked at how it stands. */
export function isSeen(session: Standing & Pick<SessionSummary, 'arrangement'>): boolean {
  return session.arrangement.seenState === reviewedSince(session);
}
