import type { SessionSummary } from './read-models';
import type { AgentState, ListedState, SessionGroup, SessionState } from './session-states';

export function hasEnded({ observations }: Pick<SessionSummary, 'observations'>): boolean {
  return observations.process !== undefined;
}

type OpenWork = Pick<SessionSummary, 'observations' | 'openTurnId' | 'runningTaskCount' | 'pendingRequestCount'>;

/** True if the session has work whose end its runner still has to report. */
export function hasOpenWork(session: OpenWork): boolean {
  if (hasEnded(session)) return false;
  return session.openTurnId !== null || session.runningTaskCount > 0 || session.pendingRequestCount > 0;
}

const ACTIVE: ReadonlySet<SessionState> = new Set(['working', 'needs-input', 'waiting-on-background']);

/** True if a session in this state has work in progress. */
export function isActiveState(state: SessionState): boolean {
  return ACTIVE.has(state);
}

const CANNOT_REPLY: ReadonlySet<SessionState> = new Set(['needs-input', 'failed', 'exited']);

/** True if the agent can reply: it neither waits for a person nor failed nor exited. */
export function canReply({ state, evidence }: Pick<SessionSummary, 'state' | 'evidence'>): boolean {
  return !CANNOT_REPLY.has(state === 'unknown' ? (evidence.last ?? state) : state);
}

/** True if the session went silent with work in progress. */
export function wentSilent({ state, evidence }: Pick<SessionSummary, 'state' | 'evidence'>): boolean {
  return state === 'unknown' && evidence.last !== undefined && isActiveState(evidence.last);
}

/** True if its process was killed, or exited with a code other than 0. */
export function hasCrashed({ state, observations }: Pick<SessionSummary, 'state' | 'observations'>): boolean {
  const exit = observations.process?.value;
  return state === 'exited' && exit !== undefined && (exit.signal !== null || (exit.code ?? 0) !== 0);
}

/** Reasons that add nothing to the state `exited`. */
const BARE_REASONS: ReadonlySet<string> = new Set(['exit', 'exited', 'other']);

/** The reason that an agent gave for its end; null if it says nothing more than that it ended. */
export function statedReason(reason: string | null): string | null {
  return reason === null || BARE_REASONS.has(reason) ? null : reason;
}

/** How a process ended: `exit code 137`, `killed by SIGKILL: out of memory`, `the terminal was closed`; null if there is nothing to say. */
export function describeExit({ code, signal, reason }: ProcessExit): string | null {
  const how = signal !== null ? `killed by ${signal}` : code === null || code === 0 ? null : `exit code ${code}`;
  const why = statedReason(reason);
  if (how === null || why === null || how.includes(why)) return how ?? why;
  return why.includes(signal ?? `code ${code}`) ? why : `${how}: ${why}`;
}

type ProcessExit = NonNullable<SessionSummary['observations']['process']>['value'];

/** The state under which people find a session. */
export function listedStateOf(session: Pick<SessionSummary, 'state' | 'evidence' | 'observations'>): ListedState {
  if (wentSilent(session)) return 'lost';
  return hasCrashed(session) ? 'failed' : session.state;
}

/** True if the session is working without progress. */
export function isStalled({ evidence }: Pick<SessionSummary, 'evidence'>): boolean {
  return evidence.note === 'no-progress';
}

/** The state under which its agent counts a session. */
export function countedStateOf(session: StateOf & Pick<SessionSummary, 'arrangement'>): AgentState {
  const listed = listedStateOf(session);
  if (listed !== 'failed' && listed !== 'lost') return listed;
  return session.arrangement.archivedAt !== null || isSeen(session) ? 'seen' : listed;
}

/** True for `needs-input`, and for unseen `failed` or `lost`. */
export function needsAttention(session: StateOf & Pick<SessionSummary, 'arrangement'>): boolean {
  return URGENT.has(countedStateOf(session));
}

const URGENT: ReadonlySet<AgentState> = new Set(['needs-input', 'failed', 'lost']);

/** The group in which lists show a session. */
export function groupOf(session: StateOf & Pick<SessionSummary, 'arrangement'>): SessionGroup {
  const { archivedAt, pinnedAt } = session.arrangement;
  if (archivedAt !== null) return 'archived';
  return pinnedAt !== null && !needsAttention(session) ? 'pinned' : countedStateOf(session);
}

type StateOf = Pick<SessionSummary, 'state' | 'stateSince' | 'evidence' | 'observations'>;

/**
 * Time at which the server learned of the session's failure; null if it has not failed. Losing contact neither ends nor
 * renews a failure.
 */
export function failedSince({ state, stateSince, evidence, observations }: StateOf): number | null {
  if (state === 'failed' || hasCrashed({ state, observations })) return stateSince;
  const wasFailed = state === 'unknown' && evidence.last === 'failed';
  return wasFailed ? (lastFailure(observations) ?? stateSince) : null;
}

/**
 * Time at which the server learned of the last failure, reported by the agent or its turn, outdated or not; null if
 * none.
 */
export function lastFailure({ report, turn }: SessionSummary['observations']): number | null {
  const reported = report?.value.state === 'failure' ? report.observedAt : 0;
  const failed = turn?.value.state === 'failed' ? turn.observedAt : 0;
  return Math.max(reported, failed) || null;
}

/** The reason for the session's last failure. */
export function failureReason(session: Pick<SessionSummary, 'state' | 'stateReason' | 'observations'>): string | null {
  const { state, stateReason, observations } = session;
  if (state !== 'unknown') return stateReason;
  const { report, turn } = observations;
  return (reportsFailure(observations) ? report?.value.summary : turn?.value.message) ?? null;
}

function reportsFailure({ report }: SessionSummary['observations']): boolean {
  return report?.value.state === 'failure' && !report.isOutdated;
}

/** The value of `seenState` that marks the current state as seen: when it failed, else when the state began. */
export function seenStateOf(session: StateOf): number {
  return failedSince(session) ?? session.stateSince;
}

/** True if a person has seen the current state. */
export function isSeen(session: StateOf & Pick<SessionSummary, 'arrangement'>): boolean {
  return session.arrangement.seenState === seenStateOf(session);
}
