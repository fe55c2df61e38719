import type { AgentStatus } from '@interlude/protocol/agent-status';
import type { Source, SourceContext } from '../host/source';
import type { CallerRule } from '../host/tool-callers';
import type { Logger } from '../logger/logger';
import type { Outbox } from '../outbox/outbox';

/** One kind of agent, as `interlude runner <kind>` runs it. @see README.md */
export interface RunnerKind {
  /** What people call it: `Codex`. */
  title: string;
  /** What it can do, and why it can't do the rest. */
  features: KindFeatures;
  /** It takes a command behind `--`, which `RunnerCall.command` has. */
  takesCommand?: boolean;
  /**
   * It connects to an agent that has an address: `--url` names that, and `--dashboard` the dashboard, by default
   * INTERLUDE_URL or the one on this machine.
   */
  urlIsAgents?: true;
  /** It runs one session, and `--prompt` may have a first message for it. @see lib/runner/host/first-message.ts */
  takesPrompt?: true;
  /** What `--help` prints. */
  help: string;
  /** Its flags beside `--agent`, `--session`, `--url` and `--token-file`. */
  flags?: Record<string, { type: 'string' | 'boolean' }>;
  /**
   * Judges what was asked for, and finds what it needs on this machine. Nothing is open yet.
   * @throws CliError with the line that says what to do next
   */
  prepare(call: RunnerCall): Promise<PreparedRunner>;
}

export interface RunnerCall {
  flag(name: string): string | undefined;
  has(name: string): boolean;
  /**
   * @param most of what is allowed
   * @returns milliseconds
   */
  seconds(name: string, otherwise: number, most: number): number;
  usage(problem: string): Error;
  env: Record<string, string | undefined>;
  dataDir: string;
  /** What stands behind `--`. */
  command: readonly string[];
}

export interface PreparedRunner {
  /** What the status record says of it. */
  about: AgentStatus & { kind: string };
  /** The component that hands events over, where the log is to tell what they say. */
  journal?: string;
  /** It carries several sessions: each of those lines names its own. */
  carriesMany?: true;
  /** Who goes on while the dashboard is away. */
  meanwhile: string;
  /** The agent, where none was named. */
  agentId: string;
  /** Two of them on one machine would be in each other's way: a second one is refused, and gets no other name. */
  isAlone?: boolean;
  /** Whether an outbox belongs to the agent that is looked for; without one, the first free agent is taken. */
  carries?(outbox: Outbox): Promise<boolean>;
  controlFile(agentId: string): string;
  /** How calls of Interlude's tools prove whose they are. @see lib/runner/host/tool-callers.ts */
  callers?: CallerRule;
  /** How long its agents may finish what they are at. */
  endWithinMs: number;
  open(opened: OpenedRunner): Promise<RunningKind>;
}

export interface OpenedRunner {
  agentId: string;
  outbox: Outbox;
  logger: Logger;
  /** For the agent before its first message; null if there is none. @see lib/runner/host/first-message.ts */
  workspaceNote: string | null;
  /** Writes down what passes between the source and its agent, where `--record` asked for it. */
  record?: (fields: object) => void;
}

export interface RunningKind {
  source(context: SourceContext): Source | Promise<Source>;
  /** The one session it is about: its address is printed. */
  sessionId?: string;
  /** Said on stderr where there is no such session. */
  greeting?: string;
}

/**
 * What a kind of agent can do with Interlude, in the order of the table in docs/kinds. A test holds the table, the verbs
 * of each source and what the pages say equal to this.
 */
export const FEATURES = {
  turns: 'turns with their texts, thoughts and tool calls',
  betweenRun: 'turns that the agent begins by itself',
  cause: 'what woke it',
  tasks: 'background tasks, as they begin',
  taskEnds: 'how a background task ended',
  taskOutput: 'what a background task writes',
  subagents: 'what subagents say and do',
  permissions: 'permissions, answered in the dashboard',
  questions: 'questions, answered in the dashboard',
  messages: 'messages from the dashboard',
  attachments: 'images and files from the composer',
  interrupt: 'interrupting a turn',
  end: 'ending the session',
  stop: 'stopping a task',
  wake: 'waking it with the result of a task',
  plans: 'plans',
  edits: 'changes of files, as diffs',
  catchUp: 'what happened while its runner was away',
  shared: 'beside the operator’s own terminal',
} as const;

export type Feature = keyof typeof FEATURES;

/**
 * True, or why not, in a sentence that an operator reads. `partly` works, with that reservation; `needless` is what the
 * agent does by itself.
 */
export type Support = true | { partly: string } | { no: string } | { needless: string };

export type KindFeatures = Record<Feature, Support>;

/** What is said on an agent's page: everything that its kind can't tell, or only in part. */
export function limitsOf(features: KindFeatures): string[] {
  return Object.values(features).flatMap((support) =>
    support === true || 'needless' in support ? [] : Object.values(support),
  );
}
