import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, listOf, numberOf, textOf, textsOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import type { WireEnd } from '../wire';
import { setBounded } from '../wire';
import { type OpenTurn, SessionWriter, type TurnEnd } from '../writer/session-writer';
import { ApiMessages, type ToolResult } from './api-messages';
import { Requests } from './requests';
import { forwardMessage, listedTaskIds, messageHandlers, withoutEnvelope } from './system-messages';
import { Tasks } from './tasks';
import { contentText, hasStandIns, rawIfSmall } from './transcript-line';
import type { TaskRef } from './turn-attribution';
import { PERSONS, TurnAttribution } from './turn-attribution';

interface ClaudeAdapterOptions {
  sessionId: string;
  newRunId: () => string;
  /** True if the source calls `taskEndsDelivered`. Otherwise, the adapter infers which turn answers which task end. */
  knowsDeliveries?: boolean;
}

export type ProcessExit = Partial<WireEnd>;

/**
 * Translates Claude Code's SDK messages to AG-UI events. One adapter serves a session through all its processes,
 * resumed ones included.
 *
 * Ordering: feed every message in order, between turns too, and call `ended` when a process exits.
 * Failure: never throws; an unknown message becomes RAW. Dropped on purpose: keep-alives, thinking signatures, and all
 * `thinking_tokens` estimates but the last of each block.
 *
 * @see `@anthropic-ai/claude-agent-sdk` 0.3.329 (CLI 2.1.329), the version measured
 */
export class ClaudeAdapter {
  readonly #writer: SessionWriter;
  readonly #turns: TurnAttribution;
  readonly #tasks: Tasks;
  readonly #messages: ApiMessages;
  readonly #requests: Requests;
  readonly #seen = new MessageDedupe();
  /** State of one process: results count from 0, and the socket's name contains the PID. */
  #nextResult = 0;
  #socket: string | null = null;
  #lastInit = '';
  #thinkingTokens: Fields | null = null;

  constructor({ knowsDeliveries, ...options }: ClaudeAdapterOptions) {
    this.#writer = new SessionWriter({
      ...options,
      reusesTaskIds: true,
      subagentTextsStayOpen: true,
      unfinished: UNFINISHED,
      beforeTurnEnds: (end, about) => {
        this.#messages.closeMain();
        return this.#turns.settle(end, about);
      },
    });
    this.#tasks = new Tasks(this.#writer);
    this.#turns = new TurnAttribution(this.#writer, (taskRunId) => this.#tasks.endOfRun(taskRunId), knowsDeliveries);
    this.#messages = new ApiMessages(this.#tasks, ({ taskId, runId }) => this.#writer.parts(taskId, runId));
    this.#requests = new Requests(this.#writer);
  }

  get turn(): OpenTurn | null {
    return this.#writer.turn;
  }

  /** Reads one SDK message; drops a repeated uuid. */
  read(message: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => {
      const fields = fieldsOf(message);
      if (this.#seen.has(fields)) return;
      const name = fields.type === 'system' ? fields.subtype : fields.type;
      const reader = this.#readers.get(name);
      if (reader === undefined) this.#forward(message);
      else reader(fields);
    });
  }

  /** Records a user message sent to the agent, with its `uuid`. The turn that answers the message names this uuid. */
  sent(message: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => {
      const fields = fieldsOf(message);
      const id = textOf(fields.uuid);
      if (id === null || this.#seen.has(fields)) return;
      this.#turns.sent(id);
      this.#userMessage(fields, id, null);
    });
  }

  /** Records the delivery of a user message that the log already holds. */
  delivered(messageId: string): void {
    if (!this.#seen.has({ uuid: messageId })) this.#turns.sent(messageId);
  }

  /**
   * Records that a prompt delivered these task ends to the agent; null means all pending ones.
   * @param how `wakes`: the prompt opens a turn; `received`: it joins the open turn
   */
  taskEndsDelivered(ends: readonly TaskRef[] | null, how: 'wakes' | 'received'): void {
    this.#turns.ends.delivered(ends, how);
  }

  /**
   * Opens a request for a `canUseTool` call.
   * @param request `tool` or `toolName`, `input` and the call's options; `expiresAt` if the wait is limited
   */
  requestOpened(request: unknown, now: number): TimedEvent[] {
    const fields = fieldsOf(request);
    const callId = textOf(fields.toolUseID);
    const shown = callId === null ? null : this.#messages.shownCall(callId);
    return this.#collect(now, () => this.#requests.opened(fields, shown));
  }

  /**
   * Resolves a request with the result of `canUseTool`.
   * @param toolUseId null if only one request is open
   * @param answer `{ behavior: 'allow' | 'deny', message? }`; `outcome` is `expired` or `cancelled` without an answer
   */
  requestAnswered(toolUseId: string | null, answer: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => this.#requests.answered(toolUseId, fieldsOf(answer)));
  }

  /**
   * Marks the open work of the previous process as interrupted or lost after another took over at `at` (epoch
   * milliseconds). Later work stays open.
   */
  replaced(at: number, now: number): TimedEvent[] {
    return this.#collect(now, () => {
      const { turn } = this.#writer;
      if (turn === null || turn.startedAt <= at) {
        this.#flushThinking();
        if (turn !== null) this.#writer.notice(REPLACED, 'warning');
        this.#interrupt({ kind: 'cancelled' });
      }
      this.#tasks.processEnded(null, at);
    });
  }

  /** Marks as lost the tasks that the agent no longer lists. */
  presumeLost(taskIds: readonly string[], now: number): TimedEvent[] {
    return this.#collect(now, () => this.#tasks.lost(taskIds));
  }

  /** Closes everything with the process, once. */
  ended(now: number, exit: ProcessExit = {}): TimedEvent[] {
    if (this.#writer.isOver) return [];
    return this.#collect(now, () => {
      this.#flushThinking();
      this.#interrupt(exit.isAsked === true ? { kind: 'cancelled' } : EXITED);
      this.#processEnded(exit.reason ?? null);
      this.#writer.processEnded({ reason: 'exited', ...exit }, 'The agent’s process ended');
    });
  }

  readonly #readers = messageHandlers<void>({
    init: (message) => this.#init(message),
    result: (message) => this.#result(message),
    assistant: (message) => this.#assistant(message),
    user: (message) => this.#user(message),
    stream_event: (message) => this.#stream(message),
    task_started: (message) => this.#tasks.started(message) || this.#forward(message),
    task_progress: (message) => this.#tasks.progress(message) || this.#forward(message),
    task_updated: (message) => this.#tasks.updated(message) || this.#forward(message),
    task_notification: (message) => this.#notified(message),
    background_tasks_changed: (message) => {
      this.#tasks.listed(message);
      this.#writer.custom('claude:background_tasks_changed', listedTaskIds(message));
    },
    status: (message) => {
      if (message.status === 'requesting') this.#turns.active('request', message);
      this.#forward(message);
    },
    session_state_changed: (message) => {
      if (message.state === 'running') this.#requests.running();
      this.#forward(message);
    },
    thinking_tokens: (message) => {
      this.#thinkingTokens = message;
    },
    permission_denied: (message) => {
      this.#requests.denied(textOf(message.tool_use_id), textOf(message.message));
      this.#forward(message);
    },
    keep_alive: () => undefined,
  });

  #init(message: Fields): void {
    const socket = textOf(message.messaging_socket_path);
    if (socket !== null && this.#socket !== null && socket !== this.#socket) this.#processEnded(null);
    this.#socket = socket ?? this.#socket;
    this.#tasks.settle();
    this.#turns.init(message);
    // Each init repeats the tools and commands; forward only changes.
    const { user_message_uuids, user_message_uuid, ...about } = withoutEnvelope(message);
    const text = JSON.stringify(about);
    if (text === this.#lastInit) return;
    this.#lastInit = text;
    this.#writer.custom('claude:init', about);
  }

  #result(message: Fields): void {
    this.#flushThinking();
    const index = numberOf(message.result_index);
    if (index !== null) {
      const count = index - this.#nextResult;
      if (count > 0) this.#writer.custom(CUSTOM.lost, { count, reason: 'agent-result-gap' });
      this.#nextResult = index + 1;
    }
    for (const denial of listOf(message.permission_denials)) {
      this.#requests.denied(textOf(fieldsOf(denial).tool_use_id), null);
    }
    this.#turns.result(message);
  }

  #assistant(message: Fields): void {
    this.#flushThinking();
    // A message after the end of its turn does not open one.
    if (isMain(message) && message.late !== true) this.#turns.active('content', message);
    const replaced = textsOf(message.supersedes);
    if (replaced.length > 0) this.#writer.custom('claude:superseded', { message_uuids: replaced });
    const { content } = fieldsOf(message.message);
    for (const { type, id } of listOf(content).map(fieldsOf)) if (type === 'tool_use') this.#requests.called(`${id}`);
    const says = textOf(content) !== null || listOf(content).some((block) => textOf(fieldsOf(block).text) !== null);
    if (isMain(message) && says) this.#turns.textWritten();
    this.#resolveCalls(this.#messages.assistant(message));
  }

  #stream(message: Fields): void {
    const event = fieldsOf(message.event);
    const begins = event.type === 'message_start' || event.type === 'content_block_start' || 'delta' in event;
    if (isMain(message)) {
      if (begins && event.type !== 'message_delta') this.#turns.active('content', message);
      if (textOf(fieldsOf(event.delta).text) !== null) this.#turns.textWritten();
    }
    this.#messages.stream(message);
  }

  #user(message: Fields): void {
    const results = this.#messages.toolResults(message);
    if (results.length > 0) {
      // A late result of an abandoned call does not open a turn.
      if (isMain(message) && this.#writer.turn !== null) {
        this.#turns.active('content', message);
        this.#turns.ends.boundary();
      }
      this.#resolveCalls(results);
      return;
    }
    const { kind, name } = fieldsOf(message.origin);
    const byPerson = message.isReplay === true || PERSONS.has(kind);
    const id = textOf(message.uuid);
    // A subagent's prompt is shown under its task. User messages written by the CLI are hidden.
    if (id !== null && (byPerson || !isMain(message))) this.#userMessage(message, id, textOf(name));
    else this.#writer.raw(message, 'claude');
  }

  #userMessage(message: Fields, id: string, name: string | null): void {
    const { content } = fieldsOf(message.message);
    const raw = hasStandIns(content) ? rawIfSmall(content) : {};
    const named = name === null ? {} : { name };
    this.#writer.userMessage(id, contentText(content), { ...named, ...this.#messages.taskOf(message), ...raw });
  }

  #notified(message: Fields): void {
    const isEvent = message.status === undefined;
    const end = isEvent ? this.#tasks.reported(message) : this.#tasks.notified(message);
    if (end === null) {
      this.#forward(message);
      return;
    }
    this.#turns.ends.add(end);
    if (!isEvent) this.#messages.taskEnded(end.taskId);
  }

  #resolveCalls(results: readonly ToolResult[]): void {
    for (const { toolUseId, ...result } of results) {
      this.#requests.toolResult(toolUseId, result);
      this.#tasks.launched(toolUseId, result.text);
    }
  }

  #interrupt(end: TurnEnd): void {
    this.#writer.interrupt(end);
    this.#turns.ends.clear();
    this.#messages.closeAll();
  }

  #processEnded(how: string | null): void {
    this.#messages.closeAll();
    this.#tasks.processEnded(how);
    this.#nextResult = 0;
    this.#socket = null;
  }

  /** Forwards only the last estimate of a block: one per delta would double the stream. */
  #flushThinking(): void {
    const message = this.#thinkingTokens;
    this.#thinkingTokens = null;
    if (message !== null) this.#forward(message);
  }

  #forward(message: unknown): void {
    forwardMessage((event) => this.#writer.emit(event), message);
  }

  #collect(now: number, work: () => void): TimedEvent[] {
    this.#writer.at(now);
    work();
    return this.#writer.drain().map(({ occurredAt, event }) => ({ occurredAt, event }));
  }
}

const UNFINISHED: TurnEnd = {
  kind: 'failed',
  message: 'The agent started its next turn without reporting the end of this one.',
  code: 'result_missing',
};
const EXITED: TurnEnd = {
  kind: 'failed',
  message: 'The agent’s process ended during this turn.',
  code: 'agent_exited',
};
const REPLACED = 'Another process took over this session before this turn ended.';

function isMain(message: Fields): boolean {
  return textOf(message.parent_tool_use_id) === null && textOf(message.agent_id) === null;
}

/** The SDK repeats messages only within a short window. */
const MAX_UUIDS = 10_000;

/** Recognizes repeated messages by uuid. */
class MessageDedupe {
  readonly #uuids = new Map<string, true>();

  /** Remembers the message. @returns true for a repeat */
  has(message: Fields): boolean {
    const uuid = textOf(message.uuid);
    if (uuid === null) return false;
    const isKnown = this.#uuids.has(uuid);
    if (!isKnown) setBounded(this.#uuids, uuid, true, MAX_UUIDS);
    return isKnown;
  }
}

const MAX_VERSION = 64;

/**
 * @param version `claude_code_version` of an `init` message or `version` of a transcript line
 * @returns `Claude Code <version>`; null if malformed
 */
export function claudeVersion(version: unknown): string | null {
  return typeof version === 'string' && version.trim() !== ''
    ? `Claude Code ${truncateText(version, MAX_VERSION)}`
    : null;
}
