import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { AttachmentKind } from '@interlude/protocol/attachments';
import type { Command, CommandType } from '@interlude/protocol/commands';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { CommandOutcome } from '../commands/seen-commands';
import type { ControlHandlers } from '../control-port/routes';
import type { LogAbout } from '../logger/log-line';
import type { CallTool } from '../mcp/agent-tools';
import type { ToolServer } from '../mcp/tool-server';
import type { Cursor } from '../outbox/statements';
import type { AttachmentFile } from './attachment-store';
import type { PendingReply } from './pending-replies';

/**
 * A connection to agents of one kind: it tells what they do, and does what people ask of them. One source carries any
 * number of sessions. @see ../sources/README.md
 */
export interface Source extends CommandHandlers {
  /** Resolves once it runs its sessions, or watches for them. */
  start(): Promise<void>;
  /**
   * Accepts nothing more, waits at most this long for owed replies and running work, and ends what it has started.
   * Called again with 0, it stops waiting.
   * @param reason why its sessions end, as their transcripts will say
   */
  close(deadlineMs: number, reason: string): Promise<void>;
  /** The sessions it carries now. */
  readonly sessions: readonly SessionFacts[];
  /** Why it has no verb for a command. */
  readonly refusals?: Partial<Record<CommandType, string>>;
  /** Why a command for a session it does not carry fails. Without this, its verbs say so themselves. */
  readonly elsewhere?: string;
  /** What it answers to its agents' hooks. */
  readonly control?: Partial<Omit<ControlHandlers, 'obligations' | 'logLevel' | 'toolOwner' | 'sessionOf'>>;
  /** Resolves once all that the agent of a session has said so far is told. Without this, it always is. */
  caughtUp?(sessionId: string): Promise<void>;
  /** The agent has replied to a message with a tool: it need not be put before it any more. */
  replied?(sessionId: string, messageId: string): void;
  /**
   * Of agents that the runner did not start: why the agent's address does not answer now, as part of a sentence; null if
   * it does, however slowly. The host asks every few seconds.
   */
  reach?(): Promise<string | null>;
  /**
   * The address has not answered for so long that the agent counts as unreachable: closes what is open. The source goes
   * on trying, and what comes afterwards is told as always.
   * @param reason what `reach` has said
   */
  lost?(reason: string): Promise<void>;
}

/** What people can ask for. The host refuses a missing verb, and the dashboard does not offer it. */
export interface CommandHandlers {
  /**
   * @param again it was begun before, with unknown outcome: no message may reach an agent twice
   * @param files what it carries, in its order; the host has checked their bytes, and keeps them
   * @returns once the agent's input has it
   */
  say?: (command: CommandOf<'message'>, again: boolean, files?: readonly AttachmentFile[]) => Promise<CommandOutcome>;
  interrupt?: Handler<'interrupt'>;
  /** Ends the session, and the runner with it, by `SourceSurroundings.over`. */
  end?: Handler<'session.end'>;
  /** Ends a task. */
  stop?: Handler<'task.stop'>;
  answer?: Handler<'permission.decision' | 'question.answer'>;
  /** Begins a turn with the result of a task, for an agent that is never told of it. */
  wake?: Handler<'task.wake'>;
  /** Does that by itself from now on, or no more; kept over restarts. */
  setWakeRule?: Handler<'wake-rule.set'>;
}

export type CommandOf<Type extends CommandType> = Extract<Command, { type: Type }>;
type Handler<Type extends CommandType> = (command: CommandOf<Type>, again: boolean) => Promise<CommandOutcome>;

export const HANDLER_NAMES: Record<Exclude<CommandType, 'log-level.set'>, keyof CommandHandlers> = {
  message: 'say',
  interrupt: 'interrupt',
  'session.end': 'end',
  'task.stop': 'stop',
  'task.wake': 'wake',
  'wake-rule.set': 'setWakeRule',
  'permission.decision': 'answer',
  'question.answer': 'answer',
};

/** What the status record says about a session besides its open work. */
export interface SessionFacts {
  sessionId: string;
  cwd?: string;
  process?: {
    state: 'starting' | 'running' | 'restarting' | 'exited';
    pid: number | null;
    exitCode: number | null;
    /** That ended it: `SIGKILL`. */
    signal?: string | null;
  };
  /** What the agent says it does. */
  state?: string;
  /** The agent's program with its version, once it has said so. */
  provider?: string | null;
  /** Messages the agent holds that no turn has answered. */
  pendingMessages?: number;
  /** The mode it works in, in the agent's words: `Plan`. */
  mode?: string;
  /** The model it works with. */
  model?: string;
  /** What people can have it do by a `/name` at the beginning of a message. */
  commands?: { name: string; description?: string }[];
  /** What messages to it may carry; null while that is not known: what carries something waits until it is. */
  attachments: readonly AttachmentKind[] | null;
  /** What this very agent can't tell or do, beyond what its kind can't: known once the agent says who it is. */
  limits?: string[];
  /** It takes messages while it is idle. Left out of what is always so, or never. */
  wakeable?: boolean;
  /** What is wrong between the runner and the agent now, in a sentence that says what to do. */
  trouble?: string;
}

/** A source's host: what the source tells goes out here. */
export interface SourceContext {
  /**
   * In order; stored with the cursors in one transaction.
   * @returns once it is stored, which may take as long as the disk is full
   */
  emit(sessionId: string, events: readonly TimedEvent[], cursors?: readonly Cursor[]): Promise<void>;
  /**
   * Tells the dashboard of a session before anything happens in it.
   * @param at since when it exists; by default now
   */
  opened(sessionId: string, at?: number, cursors?: readonly Cursor[]): Promise<void>;
  /** What is open in a session according to everything emitted, also by the previous process. */
  openWork(sessionId: string): OpenWork;
  /** The cursors whose names have this prefix, as the previous process left them. */
  cursors(prefix: string): Promise<Map<string, string>>;
  /** Files of a message that the process before had in hand, where they are now. What is lost has a path without them. */
  attached(sessionId: string, files: readonly AttachmentFile[]): Promise<AttachmentFile[]>;
  /** What the agent owes in all its sessions, as last heard from the server. */
  owed(): readonly PendingReply[];
  /** Calls Interlude's tools for a session's agent. */
  callTool(sessionId: string): CallTool;
  /** The tools as an MCP server that the agent starts itself; null without a control port. */
  toolServer(sessionId: string): ToolServer | null;
  /** A command ended differently than its verb had said. */
  report(commandId: string, outcome: CommandOutcome): void;
  /** `sessions` has changed. */
  changed(): void;
  /**
   * The runner ends in good order, as after Ctrl-C: people are done with its session.
   * @param reason why its session ends, as its transcript will say
   */
  over(reason: string): void;
  /** The agent can no longer run; why, in a sentence. */
  gaveUp(message: string): void;
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, about?: LogAbout): void;
}
