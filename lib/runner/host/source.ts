import type { TimedEvent } from '@/lib/protocol/ag-ui';
import type { Command, CommandType } from '@/lib/protocol/commands';
import type { CommandOutcome } from '@/lib/runner/commands/seen-commands';
import type { ControlHandlers } from '@/lib/runner/control-port/routes';
import type { LogAbout } from '@/lib/runner/logger/log-line';
import type { Cursor } from '@/lib/runner/outbox/statements';
import type { OpenWork } from './open-work';
import type { OwedReply } from './owed-replies';

/**
 * A connection to agents of one kind: it tells what they do, and does what people want of them. One source carries any
 * number of sessions. @see ../sources/README.md
 */
export interface Source extends Verbs {
  /** Resolves once it runs its sessions, or looks out for them. */
  start(): Promise<void>;
  /**
   * Takes nothing more, waits for what is owed and what runs for at most so long, and ends what it has started.
   * Called again with 0, it waits no longer.
   * @param reason why its sessions end, as their transcripts will say
   */
  close(deadlineMs: number, reason: string): Promise<void>;
  /** Those it carries now. */
  readonly sessions: readonly SessionFacts[];
  /** Why it has no verb for a command. */
  readonly refusals?: Partial<Record<CommandType, string>>;
  /** Why a command for a session it does not carry comes to nothing. Without it, its verbs say so themselves. */
  readonly elsewhere?: string;
  /** What it answers to hooks of its agents. */
  readonly control?: Partial<Omit<ControlHandlers, 'obligations' | 'logLevel'>>;
}

/** What people can ask for. A verb that is missing is refused by the host, and the dashboard offers it to nobody. */
export interface Verbs {
  /**
   * @param again it was begun before and what became of it is not known: no message may reach an agent twice
   * @returns once the agent's input has it
   */
  say?: Verb<'message'>;
  interrupt?: Verb<'interrupt'>;
  /** Ends a task. */
  stop?: Verb<'task.stop'>;
  answer?: Verb<'permission.decision' | 'question.answer'>;
}

export type CommandOf<Type extends CommandType> = Extract<Command, { type: Type }>;
type Verb<Type extends CommandType> = (command: CommandOf<Type>, again: boolean) => Promise<CommandOutcome>;

export const VERBS: Record<Exclude<CommandType, 'log-level.set'>, keyof Verbs> = {
  message: 'say',
  interrupt: 'interrupt',
  'task.stop': 'stop',
  'permission.decision': 'answer',
  'question.answer': 'answer',
};

/** What the status record says of a session beside what is open in it. */
export interface SessionFacts {
  sessionId: string;
  cwd?: string;
  process?: { state: 'starting' | 'running' | 'restarting' | 'exited'; pid: number | null; exitCode: number | null };
  /** What the agent says it does. */
  state?: string;
  /** The program that is the agent, with its version, once it has said so. */
  provider?: string | null;
  /** Messages in the agent's hands that no turn has answered. */
  pendingMessages?: number;
}

/** Where a source stands: what it tells goes out here. */
export interface SourceSurroundings {
  /**
   * In order; stored with the cursors in one transaction.
   * @returns once it outlives the process, which may take as long as the disk is full
   */
  emit(sessionId: string, events: readonly TimedEvent[], cursors?: readonly Cursor[]): Promise<void>;
  /**
   * Has the dashboard know of a session before anything happens in it.
   * @param at since when it is there; now, unless said
   */
  opened(sessionId: string, at?: number, cursors?: readonly Cursor[]): Promise<void>;
  /** What is open in a session by all that was emitted, also by the process before this one. */
  openWork(sessionId: string): OpenWork;
  /** The cursors whose name begins so, as the process before this one left them. */
  cursors(prefix: string): Promise<Map<string, string>>;
  /** What the agent owes by the server's last word, in all its sessions. */
  owed(): readonly OwedReply[];
  /** A command came to another end than its verb said. */
  report(commandId: string, outcome: CommandOutcome): void;
  /** `sessions` differs. */
  changed(): void;
  /** The agent can't be run any more; why, in a sentence. */
  gaveUp(message: string): void;
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, about?: LogAbout): void;
}
