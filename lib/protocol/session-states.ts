/**
 * Session states in the order in which lists show them: those that need a person most come first.
 * - `needs-input`: a permission or a question is open
 * - `failed`: the agent reported a failure, or its last turn failed
 * - `working`: a turn is open, or a message is on its way to the agent
 * - `waiting-on-background`: no turn is open, and tasks run
 * - `starting`: nothing has been observed yet
 * - `unknown`: the session gives no sign of life; `evidence.last` is the state before
 * - `idle`: no turn is open
 * - `complete`: the agent reported that its work is done
 * - `exited`: the agent's process has ended
 */
export const SESSION_STATES = [
  'needs-input',
  'failed',
  'working',
  'waiting-on-background',
  'starting',
  'unknown',
  'idle',
  'complete',
  'exited',
] as const;
export type SessionState = (typeof SESSION_STATES)[number];

/**
 * Session states as people see them: a crashed process counts as `failed` in place of `exited`, and a session that went
 * silent during work as `lost` in place of `unknown`.
 */
export const LISTED_STATES = ['needs-input', 'failed', 'lost', ...SESSION_STATES.slice(2)] as const;
export type ListedState = SessionState | 'lost';

/** States whose sessions may be listed as another. */
export const LISTED_AS: Partial<Record<SessionState, ListedState>> = { exited: 'failed', unknown: 'lost' };

/**
 * States under which an agent counts its sessions, most urgent first: the listed ones, and `seen` for a failed or lost
 * session once a person has seen that or archived it.
 */
export const AGENT_STATES = [
  'needs-input',
  'failed',
  'lost',
  'working',
  'waiting-on-background',
  'starting',
  'idle',
  'unknown',
  'complete',
  'seen',
  'exited',
] as const;
export type AgentState = (typeof AGENT_STATES)[number];

/** Groups in which lists show sessions, most urgent first: the agent states, `pinned` and `archived`. */
export const SESSION_GROUPS = [...AGENT_STATES.slice(0, 3), 'pinned', ...AGENT_STATES.slice(3), 'archived'] as const;
export type SessionGroup = AgentState | 'pinned' | 'archived';

/** A zero for each session state. */
export function noSessions(): Record<SessionState, number> {
  return Object.fromEntries(SESSION_STATES.map((state) => [state, 0])) as Record<SessionState, number>;
}

/** A zero for each state of an agent. */
export function noListed(): Record<AgentState, number> {
  return Object.fromEntries(AGENT_STATES.map((state) => [state, 0])) as Record<AgentState, number>;
}

/** An agent's state: the most urgent one of its sessions; null without sessions. */
export function agentStateOf(listed: Record<AgentState, number>): AgentState | null {
  return AGENT_STATES.find((state) => listed[state] > 0) ?? null;
}

/** States that an agent can report of itself. */
export const REPORT_STATES = ['working', 'idle', 'complete', 'failure'] as const;
export type ReportState = (typeof REPORT_STATES)[number];
