/** The state of a session: what its agent does, as far as anybody knows, and on what evidence. */

/**
 * In the order in which lists show them: those that need a person most come first.
 * - `needs-input`: a permission or a question is open
 * - `failed`: the agent says so, or its last turn failed
 * - `working`: a turn is open, or a message is on its way to the agent
 * - `waiting-on-background`: no turn is open, and tasks run
 * - `starting`: nothing has been observed yet
 * - `unknown`: nothing is heard of it any more; `evidence.last` is what it was
 * - `idle`: no turn is open
 * - `complete`: the agent says that its work is done
 * - `exited`: its process has ended
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

/** A count of sessions in each state, all of them zero. */
export function noSessions(): Record<SessionState, number> {
  return Object.fromEntries(SESSION_STATES.map((state) => [state, 0])) as Record<SessionState, number>;
}

/** What a self-report can say. */
export const REPORT_STATES = ['working', 'idle', 'complete', 'failure'] as const;
export type ReportState = (typeof REPORT_STATES)[number];

/** What the agent says of itself. */
export interface SelfReport {
  state: ReportState;
  summary: string | null;
  link: string | null;
}

/** The newest from one source. `observedAt` is when the server learned of it, on its own clock. */
export interface Observed<Value> {
  observedAt: number;
  /** The turn it speaks of; null if it speaks of none. */
  turnId: string | null;
  value: Value;
}

export interface ProcessExit {
  code: number | null;
  /** The signal that ended it: `SIGKILL`. */
  signal: string | null;
  reason: string | null;
}

/**
 * How the newest turn stands. `isSilent`: it has finished without a word. `isOutweighed`: it failed, and the agent has
 * reported since that its work is done.
 */
export interface TurnObserved {
  state: 'running' | 'finished' | 'failed' | 'interrupted';
  message?: string;
  isSilent?: true;
  isOutweighed?: true;
}

/** What was observed of a session: the newest observation from each source. */
export interface Observations {
  /** The session is known; nothing more. */
  session: Observed<null>;
  /** Its process has ended. */
  process?: Observed<ProcessExit>;
  /** It waits for an answer to this. */
  request?: Observed<string>;
  /** A message that is newer than everything else the agent told. */
  message?: Observed<null>;
  /** `isOutdated`: a person has written since, and the agent has not answered that yet. */
  report?: Observed<SelfReport> & { isOutdated?: true };
  turn?: Observed<TurnObserved>;
  /** What its runner sees it do, told after everything known of its turns. */
  agent?: Observed<'running' | 'still' | 'compacting' | 'restarting'>;
  /** How many background tasks run, and since when any does. */
  task?: Observed<number>;
  /** Processor seconds of its processes, observed when they last grew during a silence. */
  cpu?: Observed<number>;
  /** It works, and has been silent for ten minutes. */
  silence?: Observed<Silence>;
}

/** A silence that lasts for `limitMs` is no progress. */
export interface Silence {
  limitMs: number;
  /** The name of the call that runs. */
  call?: string;
}

/** Where evidence comes from. `connection` is the age of the last sign of life. */
export type EvidenceSource = Exclude<keyof Observations, 'cpu' | 'silence'> | 'connection';

/** The number of a rule of `resolveState`. */
export type StateRule = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | 16;

/**
 * What the state alone does not tell.
 * - `delivering`: a message is on its way to the agent
 * - `resumed`: it works although it had said that it was done
 * - `compacting`, `restarting`: what it does instead of its work
 * - `no-progress`: no event, output or processor time for as long as `silence` allows
 * - `no-output`: its last turn has finished without a word
 * - `inferred`: the agent has not said so itself
 */
export type StateNote =
  | 'delivering'
  | 'resumed'
  | 'compacting'
  | 'restarting'
  | 'no-progress'
  | 'no-output'
  | 'inferred';

/** Why a session is in its state. */
export interface StateEvidence {
  rule: StateRule;
  source: EvidenceSource;
  /** On the server's clock. */
  observedAt: number;
  turnId?: string;
  /** What the agent last said of itself, whether or not that decided. */
  report?: SelfReport & { observedAt: number; isOutdated?: true };
  /** What an unknown session was when it was last heard of. */
  last?: SessionState;
  note?: StateNote;
}
