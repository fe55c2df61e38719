import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { AttachmentKind } from '@interlude/protocol/attachments';
import type { Command, CommandType } from '@interlude/protocol/commands';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { LogAbout } from '../logger/logger';
import type { CallTool, ToolServer } from '../mcp/agent-tools';
import type { Cursor } from '../outbox/statements';
import type { AttachmentFile } from './attachment-store';
import type { ControlHandlers } from './control-port';
import type { OpenObligation } from './obligations';
import type { CommandOutcome } from './seen-commands';

/**
 * Connects agents of one kind: emits what they do and carries out commands. One source may run any number of sessions.
 * @see ../sources/README.md
 */
export interface Source extends CommandHandlers {
  /** Resolves once its sessions run or are being watched. */
  start(): Promise<void>;
  /**
   * Accepts no more commands, waits up to `deadlineMs` for pending replies and running work, and ends what it started.
   * A second call with 0 stops waiting.
   * @param reason shown in transcripts as the end of the session
   */
  close(deadlineMs: number, reason: string): Promise<void>;
  /** The current sessions. */
  readonly sessions: readonly SessionFacts[];
  /** True for a recording: its output files are on another machine, so task output is not read. */
  readonly isRecorded?: boolean;
  /** Reasons for missing handlers, shown when a command is refused. */
  readonly refusals?: Partial<Record<CommandType, string>>;
  /** Refuses commands for unknown sessions. If absent, the handlers refuse them. */
  readonly unknownSessionRefusal?: string;
  /** Control-port handlers for the hooks of its agents. */
  readonly control?: Partial<Omit<ControlHandlers, 'obligations' | 'logLevel' | 'toolOwner' | 'sessionOf'>>;
  /** Resolves once all output of the agent so far is emitted. Absent if output is emitted immediately. */
  caughtUp?(sessionId: string): Promise<void>;
  /** Called when the agent has replied to a message with a tool, so that the message needs no further delivery. */
  replied?(sessionId: string, messageId: string): void;
  /**
   * For agents that the runner did not start: returns the reason why the address does not respond, as part of a
   * sentence; null if it responds, however slowly. The host polls this every few seconds.
   */
  reach?(): Promise<string | null>;
  /**
   * Closes the open work of an agent that counts as unreachable. The source keeps retrying, and later events are
   * emitted as usual.
   * @param reason result of `reach`
   */
  lost?(reason: string): Promise<void>;
}

/** Command handlers. The host refuses a command without a handler, and the dashboard does not offer it. */
export interface CommandHandlers {
  /**
   * @param again true if an earlier attempt was interrupted; the message must not reach the agent twice
   * @param files attachments in order; the host verified their bytes and keeps the files
   * @returns once the message is in the input of the agent
   */
  deliver?: (
    command: CommandOf<'message'>,
    again: boolean,
    files?: readonly AttachmentFile[],
  ) => Promise<CommandOutcome>;
  interrupt?: Handler<'interrupt'>;
  /** Ends the session and, through `SourceContext.over`, the runner. */
  end?: Handler<'session.end'>;
  stop?: Handler<'task.stop'>;
  answer?: Handler<'permission.decision' | 'question.answer'>;
  /** Starts a turn with the result of a task, for an agent that is not notified of the result. */
  wake?: Handler<'task.wake'>;
  /** Turns automatic wakes on or off; survives restarts. */
  setWakeRule?: Handler<'wake-rule.set'>;
}

export type CommandOf<Type extends CommandType> = Extract<Command, { type: Type }>;
type Handler<Type extends CommandType> = (command: CommandOf<Type>, again: boolean) => Promise<CommandOutcome>;

export const HANDLER_NAMES: Record<Exclude<CommandType, 'log-level.set'>, keyof CommandHandlers> = {
  message: 'deliver',
  interrupt: 'interrupt',
  'session.end': 'end',
  'task.stop': 'stop',
  'task.wake': 'wake',
  'wake-rule.set': 'setWakeRule',
  'permission.decision': 'answer',
  'question.answer': 'answer',
};

/** Status of a session apart from its open work. */
export interface SessionFacts {
  sessionId: string;
  cwd?: string;
  process?: {
    state: 'starting' | 'running' | 'restarting' | 'exited';
    pid: number | null;
    exitCode: number | null;
    /** For example `SIGKILL`. */
    signal?: string | null;
  };
  /** Activity reported by the agent. */
  state?: string;
  /** Program and version of the agent, once known. */
  provider?: string | null;
  /** Messages delivered to the agent that no turn has answered. */
  pendingMessages?: number;
  /** Mode as the agent names it: `Plan`. */
  mode?: string;
  model?: string;
  /** Slash commands that may start a message. */
  commands?: { name: string; description?: string }[];
  /** Supported attachments; null if not yet known, in which case messages with attachments wait. */
  attachments: readonly AttachmentKind[] | null;
  /** Limits of this agent beyond those of its kind, known once it has identified itself. */
  limits?: string[];
  /** True if it accepts messages while idle. Absent if that never changes. */
  wakeable?: boolean;
  /** Current connection problem, and what to do about it. */
  trouble?: string;
}

/** Services of the host for its source. */
export interface SourceContext {
  /**
   * Emits events in order and stores them with the cursors in one transaction.
   * @returns once stored; on a full disk, once space is free
   */
  emit(sessionId: string, events: readonly TimedEvent[], cursors?: readonly Cursor[]): Promise<void>;
  /**
   * Announces a session before its first event.
   * @param at creation time, default now
   */
  announceSession(sessionId: string, at?: number, cursors?: readonly Cursor[]): Promise<void>;
  /** Open work of a session after all emitted events, including those of earlier processes. */
  openWork(sessionId: string): OpenWork;
  /** Stored cursors by name. */
  cursors(prefix: string): Promise<Map<string, string>>;
  /** Resolves the attachments of a message from an earlier process to local paths. A missing file keeps its path. */
  resolveFiles(sessionId: string, files: readonly AttachmentFile[]): Promise<AttachmentFile[]>;
  /** Pending replies of all sessions, as last reported by the server. */
  obligations(): readonly OpenObligation[];
  /** Calls Interlude's tools on behalf of a session. */
  callTool(sessionId: string): CallTool;
  /** The tools as an MCP server that the agent spawns; null without a control port. */
  toolServer(sessionId: string): ToolServer | null;
  /** Corrects the outcome of a command after its handler returned. */
  report(commandId: string, outcome: CommandOutcome): void;
  changed(): void;
  /**
   * Shuts the runner down cleanly.
   * @param reason shown in the transcript as the end of the session
   */
  endRunner(reason: string): void;
  /** Shuts the runner down because the agent can no longer run. */
  failRunner(message: string): void;
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, about?: LogAbout): void;
}
