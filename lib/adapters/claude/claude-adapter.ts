import { type AgUiEvent, CUSTOM, type TimedEvent } from '@/lib/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf, textsOf } from '@/lib/protocol/fields';
import { custom } from '../emit';
import { Speaker } from '../writer/speaker';
import { ApiMessages, type ToolResult } from './api-messages';
import { PERSONS } from './attribution';
import { carry, taskSet, workings } from './carry';
import { readersOf } from './readers';
import { Requests } from './requests';
import { SeenMessages } from './seen-messages';
import { TaskEnds, type TaskRef } from './task-ends';
import { Tasks } from './tasks';
import { Turns } from './turns';

export interface ClaudeAdapterOptions {
  /** The session the events belong to: AG-UI's threadId. */
  sessionId: string;
  newRunId: () => string;
  /** The source calls `told` to say which turn learns of which task's end. Otherwise the adapter infers it. */
  saysWhatIsTold?: boolean;
}

/** How the agent's process ended. */
export interface ProcessExit {
  /** For people: `exited`, `terminated by signal SIGKILL`. */
  reason?: string;
  exitCode?: number | null;
  /** `SIGKILL` */
  signal?: string | null;
  /** Somebody ended it on purpose: what it was doing has not failed. */
  isAsked?: boolean;
  /** The session goes on with another process: what follows, in a sentence. Without it, the session has ended. */
  goesOn?: string;
}

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
  readonly #turns: Turns;
  readonly #tasks: Tasks;
  readonly #ends: TaskEnds;
  readonly #lanes: ApiMessages;
  readonly #requests: Requests;
  readonly #seen = new SeenMessages();
  #out: TimedEvent[] = [];
  #now = 0;
  #ended = false;
  /** About the running process: its results are numbered from 0, and its socket is named after its pid. */
  #nextResult = 0;
  #socket: string | null = null;
  #lastInit = '';
  #thinkingTokens: Fields | null = null;
  /** When the open turn began, epoch milliseconds. */
  #openedAt = 0;

  constructor(options: ClaudeAdapterOptions) {
    const emit = (event: AgUiEvent) => this.#emit(event);
    const currentRun = () => this.#turns.runId;
    this.#ends = new TaskEnds(options.saysWhatIsTold);
    this.#tasks = new Tasks(emit, currentRun, () => this.#now);
    this.#lanes = new ApiMessages(this.#tasks, (task) => {
      const name = task?.runId == null ? task?.taskId : `${task.taskId}/${task.runId}`;
      return new Speaker(emit, () => name ?? currentRun() ?? 'no-run', task?.taskId, task?.runId);
    });
    this.#requests = new Requests(emit);
    this.#turns = new Turns({
      ...options,
      emit,
      ends: this.#ends,
      endOfRun: (taskRunId) => this.#tasks.endOfRun(taskRunId),
      beforeClose: (outcome) => {
        this.#lanes.closeMain();
        this.#requests.turnEnded(outcome.kind === 'cancelled');
      },
    });
  }

  /** One message of the SDK's stream. A message whose uuid was read before is ignored. */
  read(message: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => {
      const fields = fieldsOf(message);
      if (this.#seen.has(fields)) return;
      const name = fields.type === 'system' ? fields.subtype : fields.type;
      const reader = this.#readers.get(name);
      if (reader === undefined) carry((event) => this.#emit(event), message);
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
      this.#lanes.userMessage(fields, id, null);
    });
  }

  /** The agent has a user message that is already in the log: its turn can name it, and it is not told again. */
  delivered(messageId: string): void {
    if (!this.#seen.has({ uuid: messageId })) this.#turns.sent(messageId);
  }

  /**
   * A prompt tells the agent that these tasks have ended; null means all it has not been told of yet.
   * @param how whether the prompt opens a turn, or goes to the one that is open
   */
  told(ends: readonly TaskRef[] | null, how: 'wakes' | 'heard'): void {
    this.#ends.told(ends, how);
  }

  /**
   * `canUseTool` was called.
   * @param request its arguments: `tool` or `toolName`, `input`, and the options; `expiresAt` if the wait is limited
   */
  permissionAsked(request: unknown, now: number): TimedEvent[] {
    const fields = fieldsOf(request);
    const callId = textOf(fields.toolUseID);
    const shown = callId === null ? null : this.#lanes.shownCall(callId);
    return this.#collect(now, () => this.#requests.asked(fields, shown));
  }

  /**
   * `canUseTool` answered.
   * @param toolUseId which request; null if only one is open
   * @param answer `{ behavior: 'allow' | 'deny', message? }`, and `outcome` if nobody answered: `expired`, `cancelled`
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
      if (this.#turns.runId === null || this.#openedAt <= at) {
        this.#flushThinking();
        if (this.#turns.runId !== null) this.#emit(custom(CUSTOM.notice, { text: REPLACED, tone: 'warning' }));
        this.#requests.processEnded();
        this.#turns.exit(true);
        this.#lanes.closeAll();
      }
      this.#tasks.processEnded(null, at);
    });
  }

  /** The agent no longer lists these tasks, and nothing reported how they ended. */
  presumeLost(taskIds: readonly string[], now: number): TimedEvent[] {
    return this.#collect(now, () => this.#tasks.lost(taskIds));
  }

  /** The process is gone. Closes what is open; told once per process. */
  ended(now: number, exit: ProcessExit = {}): TimedEvent[] {
    if (this.#ended) return [];
    const out = this.#collect(now, () => {
      this.#flushThinking();
      this.#requests.processEnded();
      this.#turns.exit(exit.isAsked === true);
      this.#processEnded(exit.reason ?? null);
      const { reason = 'exited', exitCode, signal, goesOn } = exit;
      const notice = { text: `The agent’s process ended (${reason}). ${goesOn}`, tone: 'warning' };
      if (goesOn === undefined) this.#emit(custom(CUSTOM.sessionEnded, compact({ reason, exitCode, signal })));
      else this.#emit(custom(CUSTOM.notice, notice));
    });
    this.#ended = true;
    return out;
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
      this.#emit(custom('claude:background_tasks_changed', taskSet(message)));
    },
    status: (message) => {
      if (message.status === 'requesting') this.#turns.activity('request', message);
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
    this.#emit(custom('claude:init', about));
  }

  #result(message: Fields): void {
    this.#flushThinking();
    const index = numberOf(message.result_index);
    if (index !== null) {
      const count = index - this.#nextResult;
      if (count > 0) this.#emit(custom(CUSTOM.lost, { count, reason: 'agent-result-gap' }));
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
    if (isMain(message) && message.late !== true) this.#turns.activity('content', message);
    const replaced = textsOf(message.supersedes);
    if (replaced.length > 0) this.#emit(custom('claude:superseded', { message_uuids: replaced }));
    const { content } = fieldsOf(message.message);
    for (const { type, id } of listOf(content).map(fieldsOf)) if (type === 'tool_use') this.#requests.called(`${id}`);
    const says = textOf(content) !== null || listOf(content).some((block) => textOf(fieldsOf(block).text) !== null);
    if (isMain(message) && says) this.#turns.saidText();
    this.#heard(this.#lanes.assistant(message));
  }

  #stream(message: Fields): void {
    const event = fieldsOf(message.event);
    const begins = event.type === 'message_start' || event.type === 'content_block_start' || 'delta' in event;
    if (isMain(message)) {
      if (begins && event.type !== 'message_delta') this.#turns.activity('content', message);
      if (textOf(fieldsOf(event.delta).text) !== null) this.#turns.saidText();
    }
    this.#lanes.stream(message);
  }

  #user(message: Fields): void {
    const results = this.#lanes.toolResults(message);
    if (results.length > 0) {
      // The result of a call that was left running may come between turns: it opens no turn.
      if (isMain(message) && this.#turns.runId !== null) {
        this.#turns.activity('content', message);
        this.#ends.boundary();
      }
      this.#heard(results);
      return;
    }
    const { kind, name } = fieldsOf(message.origin);
    const byPerson = message.isReplay === true || PERSONS.has(kind);
    const id = textOf(message.uuid);
    // A subagent's prompt is shown under its task. What the CLI writes to the model as the user is not shown.
    if (id !== null && (byPerson || !isMain(message))) this.#lanes.userMessage(message, id, textOf(name));
    else this.#emit({ type: 'RAW', event: message, source: 'claude' });
  }

  #notified(message: Fields): void {
    const isEvent = message.status === undefined;
    const end = isEvent ? this.#tasks.reported(message) : this.#tasks.notified(message);
    if (end === null) {
      this.#carry(message);
      return;
    }
    this.#ends.add(end);
    if (!isEvent) this.#lanes.taskEnded(end.taskId);
  }

  #heard(results: readonly ToolResult[]): void {
    for (const { toolUseId, ...result } of results) {
      this.#requests.toolResult(toolUseId, result);
      this.#tasks.launched(toolUseId, result.text);
    }
  }

  #processEnded(how: string | null): void {
    this.#lanes.closeAll();
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

  #carry(message: Fields): void {
    carry((event) => this.#emit(event), message);
  }

  #emit(event: AgUiEvent): void {
    if (event.type === 'RUN_STARTED') this.#openedAt = this.#now;
    this.#out.push({ occurredAt: this.#now, event });
  }

  #collect(now: number, work: () => void): TimedEvent[] {
    this.#out = [];
    this.#now = now;
    work();
    if (this.#out.length > 0) this.#ended = false;
    return this.#out;
  }
}

const REPLACED = 'Another process has taken over this session. The one before it did not finish this turn.';

function isMain(message: Fields): boolean {
  return textOf(message.parent_tool_use_id) === null && textOf(message.agent_id) === null;
}
