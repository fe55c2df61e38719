import { type AgUiEvent, CUSTOM, type TimedEvent } from '@/lib/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf, textsOf } from '@/lib/protocol/fields';
import { carry, taskSet, workings } from './carry';
import { custom } from './emit';
import { Lanes, type ToolResult } from './lanes';
import { Requests } from './requests';
import { SeenMessages } from './seen-messages';
import { TaskEnds, type TaskRef } from './task-ends';
import { Tasks } from './tasks';
import { Turns } from './turns';

export interface ClaudeAdapterOptions {
  /** The session the events belong to: AG-UI's threadId. */
  sessionId: string;
  newRunId: () => string;
  /** The source says with `told` which turn is told of which task's end. Else that is concluded. */
  saysWhatIsTold?: boolean;
}

/** How the agent's process ended. */
export interface ProcessExit {
  /** For people: `exited`, `terminated by signal SIGKILL`. */
  reason?: string;
  exitCode?: number | null;
  /** Somebody ended it: what it was at has not failed. */
  isAsked?: boolean;
  /** The session goes on with another process: what follows, in a sentence. Else the session is told to have ended. */
  goesOn?: string;
}

/**
 * Claude Code's messages as AG-UI events. One reader for the life of a session's processes: feed it everything, in
 * order, also between turns, and call `ended` when a process is gone; a resumed one goes on with the same reader.
 *
 * Pure: time and run ids are passed in. Nothing makes it throw, and no message is lost without a trace: what it does
 * not understand comes out as RAW. Left out on purpose: keep-alives, thinking signatures, and of thinking_tokens all
 * but the last estimate of each block.
 *
 * @see `@anthropic-ai/claude-agent-sdk` 0.3.329 (CLI 2.1.329), with which everything here was measured
 */
export class ClaudeAdapter {
  readonly #turns: Turns;
  readonly #tasks: Tasks;
  readonly #ends: TaskEnds;
  readonly #lanes: Lanes;
  readonly #requests: Requests;
  readonly #seen = new SeenMessages();
  #out: TimedEvent[] = [];
  #now = 0;
  #ended = false;
  /** Of the running process: results are numbered from 0, and its socket is named after its pid. */
  #nextResult = 0;
  #socket: string | null = null;
  #lastInit = '';
  #thinkingTokens: Fields | null = null;

  constructor(options: ClaudeAdapterOptions) {
    const emit = (event: AgUiEvent) => this.#emit(event);
    const currentRun = () => this.#turns.runId;
    this.#ends = new TaskEnds(options.saysWhatIsTold);
    this.#tasks = new Tasks(emit, currentRun);
    this.#lanes = new Lanes(emit, this.#tasks, currentRun);
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

  /** A user message we sent to the agent, `uuid` included. It stands at once; the turn that answers it names it. */
  sent(message: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => {
      const fields = fieldsOf(message);
      const id = textOf(fields.uuid);
      if (id === null || this.#seen.has(fields)) return;
      this.#turns.sent(id);
      this.#lanes.userMessage(fields, id, null);
    });
  }

  /** A user message that stands in the log already is in the agent's hands: its turn can be told, it is not said again. */
  delivered(messageId: string): void {
    if (!this.#seen.has({ uuid: messageId })) this.#turns.sent(messageId);
  }

  /**
   * A prompt tells the agent that these tasks have ended; null is every one it has not been told of.
   * @param how it opens a turn, or is taken up by the one that is open
   */
  told(ends: readonly TaskRef[] | null, how: 'wakes' | 'heard'): void {
    this.#ends.told(ends, how);
  }

  /**
   * `canUseTool` was called.
   * @param request its arguments: `tool` or `toolName`, `input`, and the options; `expiresAt` where nobody waits for ever
   */
  permissionAsked(request: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => this.#requests.asked(fieldsOf(request)));
  }

  /**
   * `canUseTool` answered.
   * @param toolUseId which request; null where only one can be meant
   * @param answer `{ behavior: 'allow' | 'deny', message? }`, and `outcome` where nobody answered: `expired`, `cancelled`
   */
  permissionAnswered(toolUseId: string | null, answer: unknown, now: number): TimedEvent[] {
    return this.#collect(now, () => this.#requests.answered(toolUseId, fieldsOf(answer)));
  }

  /** The process is gone. Closes what is open; said once per process. */
  ended(now: number, exit: ProcessExit = {}): TimedEvent[] {
    if (this.#ended) return [];
    const out = this.#collect(now, () => {
      this.#flushThinking();
      this.#requests.processEnded();
      this.#turns.exit(exit.isAsked === true);
      this.#processEnded();
      const { reason = 'exited', exitCode, goesOn } = exit;
      if (goesOn === undefined) this.#emit(custom(CUSTOM.sessionEnded, compact({ reason, exitCode })));
      else
        this.#emit(
          custom(CUSTOM.notice, { text: `The agent’s process ended (${reason}). ${goesOn}`, tone: 'warning' }),
        );
    });
    this.#ended = true;
    return out;
  }

  readonly #readers: ReadonlyMap<unknown, (message: Fields) => void> = new Map<unknown, (message: Fields) => void>([
    ['init', (message) => this.#init(message)],
    ['result', (message) => this.#result(message)],
    ['assistant', (message) => this.#assistant(message)],
    ['user', (message) => this.#user(message)],
    ['stream_event', (message) => this.#stream(message)],
    ['task_started', (message) => this.#tasks.started(message) || this.#carry(message)],
    ['task_progress', (message) => this.#tasks.progress(message) || this.#carry(message)],
    ['task_updated', (message) => this.#tasks.updated(message) || this.#carry(message)],
    ['task_notification', (message) => this.#notified(message)],
    [
      'background_tasks_changed',
      (message) => {
        this.#tasks.listed(message);
        this.#emit(custom('claude:background_tasks_changed', taskSet(message)));
      },
    ],
    [
      'status',
      (message) => {
        if (message.status === 'requesting') this.#turns.activity('request', message);
        this.#carry(message);
      },
    ],
    [
      'session_state_changed',
      (message) => {
        if (message.state === 'running') this.#requests.running();
        this.#carry(message);
      },
    ],
    [
      'thinking_tokens',
      (message) => {
        this.#thinkingTokens = message;
      },
    ],
    [
      'permission_denied',
      (message) => {
        this.#requests.denied(textOf(message.tool_use_id), textOf(message.message));
        this.#carry(message);
      },
    ],
    ['keep_alive', () => undefined],
  ]);

  #init(message: Fields): void {
    const socket = textOf(message.messaging_socket_path);
    if (socket !== null && this.#socket !== null && socket !== this.#socket) this.#processEnded();
    this.#socket = socket ?? this.#socket;
    this.#tasks.settle();
    this.#turns.init(message);
    // The lists of tools and commands come with every init: they travel when they change.
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
    // What comes behind the end of its turn opens none.
    if (isMain(message) && message.late !== true) this.#turns.activity('content', message);
    const replaced = textsOf(message.supersedes);
    if (replaced.length > 0) this.#emit(custom('claude:superseded', { message_uuids: replaced }));
    const { content } = fieldsOf(message.message);
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
      // The result of a call that was left running may come between turns: it opens none.
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
    // A subagent's prompt shows under its task. What the CLI writes for the model in a user's name does not show.
    if (id !== null && (byPerson || !isMain(message))) this.#lanes.userMessage(message, id, textOf(name));
    else this.#emit({ type: 'RAW', event: message, source: 'claude' });
  }

  #notified(message: Fields): void {
    const end = this.#tasks.notified(message);
    if (end === null) {
      this.#carry(message);
      return;
    }
    this.#ends.add(end);
    this.#lanes.taskEnded(end.taskId);
  }

  #heard(results: readonly ToolResult[]): void {
    for (const { toolUseId, ...result } of results) this.#requests.toolResult(toolUseId, result);
  }

  #processEnded(): void {
    this.#lanes.closeAll();
    this.#tasks.processEnded();
    this.#nextResult = 0;
    this.#socket = null;
  }

  /** One estimate per delta would double the stream: the last one of a block says it all. */
  #flushThinking(): void {
    const message = this.#thinkingTokens;
    this.#thinkingTokens = null;
    if (message !== null) this.#carry(message);
  }

  #carry(message: Fields): void {
    carry((event) => this.#emit(event), message);
  }

  #emit(event: AgUiEvent): void {
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

/** Origins of user messages that are shown as such. @see SDKMessageOrigin */
const PERSONS: ReadonlySet<unknown> = new Set(['human', 'peer', 'channel', 'coordinator']);

function isMain(message: Fields): boolean {
  return textOf(message.parent_tool_use_id) === null && textOf(message.agent_id) === null;
}
