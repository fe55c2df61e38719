import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, listOf, numberOf, textOf, textsOf } from '@interlude/protocol/fields';
import type { WireEnd } from '../wire';
import { type OpenTurn, SessionWriter, type TurnEnd } from '../writer/session-writer';
import { ApiMessages, type ToolResult } from './api-messages';
import { PERSONS } from './attribution';
import { carry, taskSet, workings } from './carry';
import { readersOf } from './readers';
import { Requests } from './requests';
import { SeenMessages } from './seen-messages';
import { contentText, hasStandIns, rawIfSmall } from './stand-in';
import type { TaskRef } from './task-ends';
import { Tasks } from './tasks';
import { TurnAttribution } from './turn-attribution';

export interface ClaudeAdapterOptions {
  /** The session the events belong to: AG-UI's threadId. */
  sessionId: string;
  newRunId: () => string;
  /** The source calls `told` to say which turn answers which task's end. Otherwise the adapter infers it. */
  saysWhatIsTold?: boolean;
}

/** How the agent's process ended. */
export type ProcessExit = Partial<WireEnd>;

/**
 * Claude Code's messages as AG-UI events. One reader serves a session through all its processes: feed it everything, in
 * order, between turns too, and call `ended` when a process is gone. A resumed session goes on with the same reader.
 *
 * Pure: time and run ids are passed in. It never throws, and no message is lost without a trace: what it does not
 * understand comes out as RAW. Left out on purpose: keep-alives, thinking signatures, and all thinking_tokens estimates
 * but the last of each block.
 *
 * @see `@anthropic-ai/claude-agent-sdk` 0.3.329 (CLI 2.1.329), against which all of this was measured
 */
export class ClaudeAdapter {
  readonly #writer: SessionWriter;
  readonly #turns: TurnAttribution;
  readonly #tasks: Tasks;
  readonly #messages: ApiMessages;
  readonly #requests: Requests;
  readonly #seen = new SeenMessages();
  /** About the running process: its results are numbered from 0, and its socket is named after its pid. */
  #nextResult = 0;
  #socket: string | null = null;
  #lastInit = '';
  #thinkingTokens: Fields | null = null;

  constructor({ saysWhatIsTold, ...options }: ClaudeAdapterOptions) {
    this.#writer = new SessionWriter({
      ...options,
      reusesTaskIds: true,
      subagentsGoOn: true,
      unfinished: UNFINISHED,
      beforeTurnEnds: (end, about) => {
        this.#messages.closeMain();
        return this.#turns.settle(end, about);
      },
    });
    this.#tasks = new Tasks(this.#writer);
    this.#turns = new TurnAttribution(this.#writer, (taskRunId) => this.#tasks.endOfRun(taskRunId), saysWhatIsTold);
    this.#messages = new ApiMessages(this.#tasks, ({ taskId, runId }) => this.#writer.speaker(taskId, runId));
    this.#requests = new Requests(this.#writer);
  }

  get turn(): OpenTurn | null {
    return this.#writer.turn;
  }

  /** One message of the SDK's stream. A message whose uuid was read before is ignored. */
  read(message: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => {
      const fields = fieldsOf(message);
      if (this.#seen.has(fields)) return;
      const name = fields.type === 'system' ? fields.subtype : fields.type;
      const reader = this.#readers.get(name);
      if (reader === undefined) this.#carry(message);
      else reader(fields);
    });
  }

  /** A user message that we sent to the agent, with its `uuid`. It shows at once; the turn that answers it names it. */
  sent(message: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => {
      const fields = fieldsOf(message);
      const id = textOf(fields.uuid);
      if (id === null || this.#seen.has(fields)) return;
      this.#turns.sent(id);
      this.#userMessage(fields, id, null);
    });
  }

  /** The agent has a user message that is already in the log: its turn can name it, and it is not written again. */
  delivered(messageId: string): void {
    if (!this.#seen.has({ uuid: messageId })) this.#turns.sent(messageId);
  }

  /**
   * A prompt reports the ends of these tasks to the agent; null means all that no prompt has reported yet.
   * @param how whether the prompt opens a turn, or goes to the one that is open
   */
  told(ends: readonly TaskRef[] | null, how: 'wakes' | 'heard'): void {
    this.#turns.ends.told(ends, how);
  }

  /**
   * `canUseTool` was called.
   * @param request its arguments: `tool` or `toolName`, `input`, and the options; `expiresAt` if the wait is limited
   */
  permissionAsked(request: unknown, now: number): TimedEvent[] {
    const fields = fieldsOf(request);
    const callId = textOf(fields.toolUseID);
    const shown = callId === null ? null : this.#messages.shownCall(callId);
    return this.#collect(now, () => this.#requests.asked(fields, shown));
  }

  /**
   * `canUseTool` answered.
   * @param toolUseId which request; null if only one is open
   * @param answer `{ behavior: 'allow' | 'deny', message? }`, and `outcome` if it was not answered: `expired`, `cancelled`
   */
  permissionAnswered(toolUseId: string | null, answer: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => this.#requests.answered(toolUseId, fieldsOf(answer)));
  }

  /**
   * Another process has served the session since `at`: what its predecessor had open is interrupted or lost. What the
   * new process began stays open.
   *
   * @param at epoch milliseconds
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

  /** The agent no longer lists these tasks, and nothing reported how they ended. */
  presumeLost(taskIds: readonly string[], now: number): TimedEvent[] {
    return this.#collect(now, () => this.#tasks.lost(taskIds));
  }

  /** The process is gone: closes everything that is open, once per process. */
  ended(now: number, exit: ProcessExit = {}): TimedEvent[] {
    if (this.#writer.isOver) return [];
    return this.#collect(now, () => {
      this.#flushThinking();
      this.#interrupt(exit.isAsked === true ? { kind: 'cancelled' } : EXITED);
      this.#processEnded(exit.reason ?? null);
      this.#writer.over({ reason: 'exited', ...exit }, 'The agent’s process ended');
    });
  }

  readonly #readers = readersOf<void>({
    init: (message) => this.#init(message),
    result: (message) => this.#result(message),
    assistant: (message) => this.#assistant(message),
    user: (message) => this.#user(message),
    stream_event: (message) => this.#stream(message),
    task_started: (message) => this.#tasks.started(message) || this.#carry(message),
    task_progress: (message) => this.#tasks.progress(message) || this.#carry(message),
    task_updated: (message) => this.#tasks.updated(message) || this.#carry(message),
    task_notification: (message) => this.#notified(message),
    background_tasks_changed: (message) => {
      this.#tasks.listed(message);
      this.#writer.custom('claude:background_tasks_changed', taskSet(message));
    },
    status: (message) => {
      if (message.status === 'requesting') this.#turns.active('request', message);
      this.#carry(message);
    },
    session_state_changed: (message) => {
      if (message.state === 'running') this.#requests.running();
      this.#carry(message);
    },
    thinking_tokens: (message) => {
      this.#thinkingTokens = message;
    },
    permission_denied: (message) => {
      this.#requests.denied(textOf(message.tool_use_id), textOf(message.message));
      this.#carry(message);
    },
    keep_alive: () => undefined,
  });

  #init(message: Fields): void {
    const socket = textOf(message.messaging_socket_path);
    if (socket !== null && this.#socket !== null && socket !== this.#socket) this.#processEnded(null);
    this.#socket = socket ?? this.#socket;
    this.#tasks.settle();
    this.#turns.init(message);
    // Every init lists the tools and commands: they are passed on only when they change.
    const { user_message_uuids, user_message_uuid, ...about } = workings(message);
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
    // A message that comes after the end of its turn opens no turn.
    if (isMain(message) && message.late !== true) this.#turns.active('content', message);
    const replaced = textsOf(message.supersedes);
    if (replaced.length > 0) this.#writer.custom('claude:superseded', { message_uuids: replaced });
    const { content } = fieldsOf(message.message);
    for (const { type, id } of listOf(content).map(fieldsOf)) if (type === 'tool_use') this.#requests.called(`${id}`);
    const says = textOf(content) !== null || listOf(content).some((block) => textOf(fieldsOf(block).text) !== null);
    if (isMain(message) && says) this.#turns.saidText();
    this.#heard(this.#messages.assistant(message));
  }

  #stream(message: Fields): void {
    const event = fieldsOf(message.event);
    const begins = event.type === 'message_start' || event.type === 'content_block_start' || 'delta' in event;
    if (isMain(message)) {
      if (begins && event.type !== 'message_delta') this.#turns.active('content', message);
      if (textOf(fieldsOf(event.delta).text) !== null) this.#turns.saidText();
    }
    this.#messages.stream(message);
  }

  #user(message: Fields): void {
    const results = this.#messages.toolResults(message);
    if (results.length > 0) {
      // The result of a call that was left running may come between turns: it opens no turn.
      if (isMain(message) && this.#writer.turn !== null) {
        this.#turns.active('content', message);
        this.#turns.ends.boundary();
      }
      this.#heard(results);
      return;
    }
    const { kind, name } = fieldsOf(message.origin);
    const byPerson = message.isReplay === true || PERSONS.has(kind);
    const id = textOf(message.uuid);
    // A subagent's prompt is shown under its task. What the CLI writes to the model as the user is not shown.
    if (id !== null && (byPerson || !isMain(message))) this.#userMessage(message, id, textOf(name));
    else this.#writer.raw(message, 'claude');
  }

  /** A message to the agent, from a person or another agent, or the prompt of a subagent. */
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
      this.#carry(message);
      return;
    }
    this.#turns.ends.add(end);
    if (!isEvent) this.#messages.taskEnded(end.taskId);
  }

  #heard(results: readonly ToolResult[]): void {
    for (const { toolUseId, ...result } of results) {
      this.#requests.toolResult(toolUseId, result);
      this.#tasks.launched(toolUseId, result.text);
    }
  }

  /** Ends all open requests, texts, calls and the turn with the process. */
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

  /** One estimate per delta would double the stream, so only the last one of a block is passed on. */
  #flushThinking(): void {
    const message = this.#thinkingTokens;
    this.#thinkingTokens = null;
    if (message !== null) this.#carry(message);
  }

  #carry(message: unknown): void {
    carry((event) => this.#writer.pass(event), message);
  }

  #collect(now: number, work: () => void): TimedEvent[] {
    this.#writer.at(now);
    work();
    return this.#writer.take().map(({ occurredAt, event }) => ({ occurredAt, event }));
  }
}

const UNFINISHED: TurnEnd = {
  kind: 'failed',
  message: 'The agent began its next turn without saying how this one ended.',
  code: 'result_missing',
};
const EXITED: TurnEnd = {
  kind: 'failed',
  message: 'The agent’s process ended in the middle of this turn.',
  code: 'agent_exited',
};
const REPLACED = 'Another process has taken over this session. The one before it did not finish this turn.';

function isMain(message: Fields): boolean {
  return textOf(message.parent_tool_use_id) === null && textOf(message.agent_id) === null;
}
