import type { RequestOpenedValue, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { earliest, setBounded, type WireEnd } from '../wire';
import { planEntry } from '../writer/part-events';
import { SessionWriter, type SessionWriterOptions, type TurnEnd } from '../writer/session-writer';
import { boundValue } from '../writer/size-limits';
import type { AgentProfile } from './agent-profiles';
import { CallTasks, isQwenTurnNotice, qwenTaskEnd } from './call-tasks';
import { Calls } from './calls';
import { ClaudeExtras } from './claude-extras';
import { blockText, outcomeOf, permissionOf, promptText } from './content';
import { PromptTurns } from './prompt-turns';
import type { Replay } from './replay';
import type { RpcError } from './rpc';
import { Settings } from './settings';

const MAX_REQUESTS = 256;
/** Messages remembered because text may follow their turn. */
const MAX_MESSAGES = 256;
const UNIQUE_ID_LENGTH = 16;
/** Matches random letters and digits, or a timestamp. Counters have small trailing numbers. */
const UNIQUE_ID = /\d[a-z].*\d[a-z]|[1-9]\d{9}/i;

const FAILED: TurnEnd = { kind: 'failed', message: 'The agent reported an error. See its last message.' };

const REFUSALS: ReadonlyMap<RequestResolvedValue['outcome'], string> = new Map([
  ['denied', 'Denied.'],
  ['cancelled', 'Cancelled before it ran.'],
  ['expired', 'Not allowed in time.'],
]);

const MAX_COMPACTIONS = 256;

type Tone = 'info' | 'warning' | 'error';

const COMPACTION: ReadonlyMap<unknown, readonly [text: string, tone: Tone]> = new Map([
  ['in_progress', ['The agent is compacting the conversation', 'info']],
  ['completed', ['The conversation was compacted', 'info']],
  ['failed', ['The conversation could not be compacted', 'error']],
  ['cancelled', ['The conversation was not compacted', 'warning']],
] as const);

/** One ACP session. @see ACP v1 */
export class AcpSession {
  readonly settings = new Settings();
  readonly writer: SessionWriter;
  readonly #newId: () => string;
  readonly #answerWithinMs: number | undefined;
  readonly #calls: Calls;
  readonly turns: PromptTurns;
  readonly tasks: CallTasks;
  readonly claude: ClaudeExtras;
  /** Announced compactions, by id and status. */
  readonly #announced = new Map<string, true>();
  /** Open requests, by JSON-RPC id. */
  readonly requests = new Map<string, RequestOpenedValue>();
  /** Turn's run id by the agent's message id; null for messages between turns. */
  readonly #turnOf = new Map<string, string | null>();
  /** True if codex-acp reported a failure in its thread status. It answers a failed prompt with `end_turn`. */
  #hasFailed = false;
  #planId: string | null = null;
  replay: Replay | null = null;

  /** @param answerWithinMs timeout of a request; unlimited by default */
  constructor(options: SessionWriterOptions & { answerWithinMs?: number | undefined }) {
    this.#answerWithinMs = options.answerWithinMs;
    this.writer = new SessionWriter(options);
    this.#newId = options.newRunId;
    this.#calls = new Calls(this.writer);
    const isBusy = () => this.#calls.open.length > 0 || this.requests.size > 0;
    this.turns = new PromptTurns(this.writer, isBusy, (end) => this.#turnEnds(end));
    this.claude = new ClaudeExtras(this.writer, this.turns);
    this.turns.cause = () => this.claude.cause;
    this.tasks = new CallTasks(this.writer, this.#calls, this.claude);
  }

  set profile(profile: AgentProfile) {
    this.turns.profile = profile;
    this.tasks.profile = profile;
  }

  get dueAt(): number | null {
    return earliest([this.turns.dueAt, this.claude.dueAt]);
  }

  elapsed(now: number): void {
    this.claude.elapsed(now);
    this.turns.elapsed(now);
  }

  prompted(key: string, { prompt, _meta }: Fields, now: number): void {
    this.replay?.end();
    this.#hasFailed = false;
    const ids = listOf(fieldsOf(fieldsOf(_meta).interlude).messageIds).flatMap((id) => textOf(id) ?? []);
    for (const id of ids) this.writer.dashboardMessage(id, id === ids[0] ? promptText(prompt) : '');
    if (ids.length === 0) {
      const id = `prompt-${this.#newId()}`;
      ids.push(id);
      this.writer.userMessage(id, promptText(prompt));
    }
    this.turns.sent(key, ids, now);
  }

  promptResponded(key: string, { stopReason, usage }: Fields, error: RpcError | null, now: number): void {
    const result = compact({ stopReason, usage });
    const about = Object.keys(result).length > 0 ? { result: boundValue(result) } : {};
    const end = endOf(stopReason, error);
    this.turns.responded(key, this.#hasFailed && end.kind === 'success' ? FAILED : end, about, now);
  }

  /** Handles the loss of the session and of all work in it. */
  promptRejected(key: string, error: RpcError, now: number): void {
    this.turns.rejected(key, endOf(null, error), now);
    this.tasks.forgotten();
  }

  permissionRequested(key: string, params: Fields, now: number): void {
    if (this.requests.has(key)) return;
    // The content of a permission is its reason, not output of the call. The call's own input has priority.
    const { toolCallId, content: _, rawInput, ...about } = fieldsOf(params.toolCall);
    const callId = textOf(toolCallId);
    const known = callId === null ? undefined : this.#calls.get(callId)?.rawInput;
    if (callId === null) this.turns.content(now);
    else this.#call(callId, { ...about, status: 'in_progress', rawInput: known ?? rawInput }, now);
    const call = callId === null ? null : (this.#calls.get(callId) ?? null);
    const within = this.#answerWithinMs;
    const value = {
      ...permissionOf(`ask-${this.#newId()}`, params, call),
      ...(within === undefined ? {} : { expires_at: now + within }),
    };
    if (this.requests.size >= MAX_REQUESTS) this.#forgetOldest();
    this.requests.set(key, value);
    this.writer.requested(value, this.writer.turn === null || (call?.taskId ?? null) !== null);
  }

  answers(key: string, result: Fields, error: RpcError | null): void {
    const value = this.requests.get(key);
    if (value === undefined) return;
    this.requests.delete(key);
    const outcome = error === null ? outcomeOf(result, value.options ?? []) : 'unknown';
    this.writer.resolved(value.request_id, outcome, outcome === 'expired' ? 'Nobody answered in time.' : null);
    const refusal = REFUSALS.get(outcome);
    if (refusal !== undefined && value.tool_use_id !== undefined) this.#calls.refused(value.tool_use_id, refusal);
  }

  /** Handles `session/update`; `frame` is the whole message, stored if unknown. */
  update(update: Fields, frame: unknown, now: number): void {
    if (this.replay?.absorb(update, now) === true) return;
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        this.#chunk('text', update, now);
        break;
      case 'agent_thought_chunk':
        this.#chunk('thought', update, now);
        break;
      case 'user_message_chunk':
        this.#userChunk(update);
        break;
      case 'tool_call':
      case 'tool_call_update': {
        const id = textOf(update.toolCallId);
        if (id === null) this.raw(frame);
        else this.#call(id, update, now);
        break;
      }
      case 'plan':
        this.turns.content(now);
        this.#planId ??= `plan-${this.#newId()}`;
        this.writer.plan(
          this.#planId,
          listOf(update.entries)
            .map(fieldsOf)
            .map((entry) => planEntry(entry.content, entry.status, entry.priority)),
        );
        break;
      case 'current_mode_update':
      case 'config_option_update':
      case 'available_commands_update':
        this.#set(update);
        break;
      case 'usage_update': {
        const origin = fieldsOf(update._meta)['_claude/origin'];
        if (origin !== undefined) this.claude.origin(fieldsOf(origin), now);
        this.#forward('acp:usage', update);
        break;
      }
      case 'session_info_update': {
        const { type } = fieldsOf(fieldsOf(fieldsOf(update._meta).codex).threadStatus);
        if (type !== undefined) this.#hasFailed = type === 'systemError';
        this.#forward('acp:session_info', update);
        break;
      }
      case 'async_task_spawned':
      case 'async_task_progress':
      case 'async_task_state_update':
        this.claude.asyncTask(update, now);
        break;
      case 'notice':
        if (!this.#notice(update)) this.raw(frame);
        break;
      case 'compaction_update':
      case 'compaction_summary_chunk':
        this.#compaction(update);
        break;
      case 'state_update':
        if (update.state === 'running') this.turns.working(now);
        else if (update.state === 'idle') this.turns.idle(endOf(update.stopReason, null), now);
        break;
      default:
        this.raw(frame);
    }
  }

  modeChanged(modeId: unknown): void {
    this.#set({ sessionUpdate: 'current_mode_update', currentModeId: modeId });
  }

  /** Stores an unknown message, truncated to fit a record. */
  raw(frame: unknown): void {
    this.writer.raw(boundValue(frame), 'acp');
  }

  ended(end: WireEnd): void {
    this.#calls.endRefused();
    this.writer.end(end);
    this.requests.clear();
    this.turns.forget();
    this.claude.forget();
    this.#planId = null;
    this.replay = null;
  }

  #chunk(kind: 'text' | 'thought', { content, messageId, _meta }: Fields, now: number): void {
    const text = blockText(content);
    const meta = fieldsOf(_meta);
    const ended = qwenTaskEnd(meta, text);
    if (ended !== null) this.writer.taskCompleted(ended);
    if (ended !== null || text === '' || isQwenTurnNotice(meta)) return;
    // Gemini sends the mode as an agent message.
    const mode = kind === 'text' ? /^\[MODE_UPDATE\] (\S+)$/.exec(text)?.[1] : undefined;
    if (mode !== undefined) {
      this.modeChanged(mode);
      return;
    }
    const task = this.tasks.subagentOf(meta);
    const parts = this.writer.parts(task);
    const id = textOf(messageId);
    if (task === null && id !== null && this.#isTail(id)) {
      if (!parts.appendLate(kind, id, text)) parts.appendText(kind, id, text);
      return;
    }
    if (task === null) this.turns.content(now, kind === 'text' ? { messageId: id } : undefined);
    if (task === null && id !== null) setBounded(this.#turnOf, id, this.writer.turn?.runId ?? null, MAX_MESSAGES);
    parts.appendText(kind, id, text);
    // Qwen's discrete messages are complete but have no id.
    if (meta.qwenDiscreteMessage === true) parts.endText();
  }

  /**
   * True for more text of a message whose turn has ended. Some agents restart message ids in each turn, so during
   * another turn a counter-like id starts a new message.
   */
  #isTail(messageId: string): boolean {
    const turn = this.#turnOf.get(messageId);
    const runId = this.writer.turn?.runId ?? null;
    if (turn === undefined || turn === runId) return false;
    const isUnique = messageId.length >= UNIQUE_ID_LENGTH && UNIQUE_ID.test(messageId);
    return isUnique || (runId === null && !this.turns.isAwaited);
  }

  /** Handles an echo of a prompt, or a message from another client. */
  #userChunk({ content, messageId }: Fields): void {
    if (this.writer.turn?.kind === 'user' || this.turns.isAwaited) return;
    this.writer.userMessage(textOf(messageId) ?? `user-${this.#newId()}`, blockText(content));
  }

  #call(id: string, update: Fields, now: number): void {
    const meta = fieldsOf(update._meta);
    const known = this.#calls.get(id);
    const task = known === undefined ? this.tasks.subagentOf(meta) : known.taskId;
    // An update of a known call may come long after its turn.
    if (task === null && (known === undefined || this.writer.turn !== null)) this.turns.content(now);
    const end = this.#calls.apply(id, update, task);
    const call = this.#calls.get(id);
    if (call !== undefined) this.tasks.launched(call, fieldsOf(fieldsOf(meta.claudeCode).toolResponse));
    if (end === null) return;
    const isLate = this.#calls.isLate(end.call);
    this.#calls.end(end);
    this.tasks.callEnded(end, isLate);
  }

  #set(update: Fields): void {
    const { settings } = this;
    const before = { mode: settings.mode, model: settings.model };
    if (update.sessionUpdate === 'available_commands_update') settings.commandsChanged(update.availableCommands);
    else if (update.sessionUpdate === 'current_mode_update') settings.modeChanged(update.currentModeId);
    else settings.configured(update.configOptions);
    for (const setting of ['mode', 'model'] as const) {
      const now = settings[setting];
      if (before[setting] !== null && now !== null && now.id !== before[setting].id) {
        this.writer.notice(`The ${setting} is now ${now.name}.`);
      }
    }
  }

  #forward(name: string, update: Fields): void {
    this.writer.custom(name, boundValue(update));
  }

  /** Shows a session notice. @returns false without a title */
  #notice({ title, description, severity }: Fields): boolean {
    const [head, more] = [textOf(title), textOf(description)];
    if (head === null) return false;
    const text = more === null ? head : `${head}${/[.:!?]$/.test(head) ? '' : ':'} ${more}`;
    // Unknown severities count as info.
    this.writer.notice(text, severity === 'warning' || severity === 'error' ? severity : 'info');
    return true;
  }

  /** Announces each step of a compaction once. Chunks of its summary are stored, not shown. */
  #compaction(update: Fields): void {
    this.#forward('acp:compaction', update);
    const { compactionId, status, error } = update;
    const announcement = COMPACTION.get(status);
    const key = `${textOf(compactionId) ?? ''} ${status}`;
    if (announcement === undefined || this.#announced.has(key)) return;
    setBounded(this.#announced, key, true, MAX_COMPACTIONS);
    const [text, tone] = announcement;
    this.writer.notice(textOf(error) === null ? `${text}.` : `${text}: ${error}`, tone);
  }

  #forgetOldest(): void {
    const [key, value] = this.requests.entries().next().value ?? ['', null];
    this.requests.delete(key);
    if (value !== null) this.writer.resolved(value.request_id, 'unknown');
  }

  /** Closes open work before the turn ends. */
  #turnEnds(end: TurnEnd): void {
    this.tasks.turnEnds(end, this.turns.isAwaited);
    this.#calls.endRefused();
    this.#planId = null;
  }
}

function endOf(stopReason: unknown, error: RpcError | null): TurnEnd {
  if (error !== null) return { kind: 'failed', message: error.message, code: `${error.code ?? 'error'}` };
  if (stopReason === 'cancelled') return { kind: 'cancelled' };
  if (stopReason === 'refusal') return { kind: 'failed', message: 'The model refused to answer.', code: 'refusal' };
  return { kind: 'success' };
}
