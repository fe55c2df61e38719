import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import type { Command } from '@/lib/protocol/commands';
import type { CommandOutcome } from '@/lib/runner/commands/seen-commands';
import type { Cursor } from '@/lib/runner/outbox/statements';

/** A live connection to one agent: it tells what the agent does, and does what people want of it. */
export interface Source {
  /** Resolves once the agent is being run. */
  start(): Promise<void>;
  /**
   * Acts on a command for the source's session.
   * @param again it was begun before and its end is not known
   * @returns once it had its effect: a message, once it is in the agent's input
   */
  deliver(command: Command, again: boolean): Promise<CommandOutcome>;
  /**
   * Takes nothing more, waits for what is owed and what runs for at most so long, and ends the agent.
   * Called again with 0, it waits no longer.
   * @param reason why the session ends, as its transcript will say
   */
  close(deadlineMs: number, reason: string): Promise<void>;
  /** What the agent's process is doing, for the status record. */
  readonly observation: SourceObservation;
}

export interface SourceObservation {
  process: { state: 'starting' | 'running' | 'restarting' | 'exited'; pid: number | null; exitCode: number | null };
  openTurnId: string | null;
  tasks: { id: string; description: string }[];
  requests: string[];
  /** The program that is the agent, with its version, once it has said so. */
  provider: string | null;
  /** Messages in the agent's hands that no turn has answered. */
  pendingMessages: number;
}

/** An event the agent gave, before it is addressed. */
export interface SourceEvent {
  /** Epoch milliseconds. */
  occurredAt: number;
  event: AgUiEvent;
}

/** Where a source stands: what it tells goes out here. */
export interface SourceSurroundings {
  sessionId: string;
  /** In order; stored with the cursors as soon as the disk takes them. */
  emit(events: readonly SourceEvent[], cursors?: readonly Cursor[]): void;
  /** Resolves once what was emitted before, and this, outlives the process. */
  store(cursors: readonly Cursor[]): Promise<void>;
  /** A command came to another end than `deliver` said. */
  report(commandId: string, outcome: CommandOutcome): void;
  /** The newest of these messages that a person in this session waits for a reply to, or null. */
  latestObligation(among: readonly string[]): string | null;
  /** `observation` differs. */
  changed(): void;
  /** The agent can not be run any more; why, in a sentence. */
  gaveUp(message: string): void;
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): void;
}
