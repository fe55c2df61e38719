import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { earliest, setBounded } from '../wire';
import type { SessionWriter, TurnCause, TurnEnd } from '../writer/session-writer';
import { errorText, inputText } from './items';

interface TurnsOptions {
  writer: SessionWriter;
  /** Turns of the parent thread, for a subagent. */
  parent: Turns | null;
  /** True if the log lacks the messages that Interlude sent. */
  isReplay: boolean;
  /** Called before a turn ends, to write its open work. */
  onEnding: (turnId: string) => void;
}

const MAX_TURNS = 500;
const MAX_SUMMARY = 4_000;
/** Time to wait for a turn's cause; shorter while a goal is active. */
const UNKNOWN_MS = 3_000;
const FOR_GOAL_MS = 1_000;
/** Time to wait for a turn's end after its thread became idle or failed. */
const IDLE_MS = 5_000;
const FAILED_MS = 2_000;
/** Time to wait for a sign of life of a turn that is known only from history, while its thread is inactive. */
const DIED_MS = 2_000;

type Timer = 'begin' | 'idle' | 'failed' | 'died';

/**
 * The turns of one thread. Codex announces a turn before its cause, so its start is written with its first item. A turn
 * of a subagent's thread is a task.
 */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #writer: SessionWriter;
  readonly #timers = new Map<Timer, number>();
  /** Client id of the message that opened each turn. */
  readonly #expected = new Map<string, string>();
  readonly #endedTurns = new Map<string, true>();
  /** Turn that has started, but whose cause is unknown. */
  #pending: string | null = null;
  #open: { turnId: string; cause: TurnCause | null } | null = null;
  #last: string | null = null;
  #isForGoal = false;
  #error: { message: string; code?: string } | null = null;
  #spawnedBy: string | null = null;
  #name: string | null = null;
  #lastText = '';
  #revision = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
    this.#writer = options.writer;
  }

  /** The running turn. */
  get running(): string | null {
    return this.#open?.turnId ?? this.#pending;
  }

  /** The running turn, once written. */
  get open(): { readonly turnId: string; readonly cause: TurnCause | null } | null {
    return this.#open;
  }

  /** The last ended turn. */
  get last(): string | null {
    return this.#last;
  }

  get isSubagents(): boolean {
    return this.#options.parent !== null;
  }

  /** Changes whenever `open` or `last` does. */
  get revision(): number {
    return this.#revision;
  }

  isOver(turnId: string | null): boolean {
    return turnId === null || this.#endedTurns.has(turnId);
  }

  /** Task of a subagent's turn; null for other threads. */
  taskOf(turnId: string | null): string | null {
    return this.isSubagents ? (turnId ?? this.running ?? this.#last) : null;
  }

  /** Resumes from an earlier process. @param open the turn still open */
  restore(last: string | null, open: { turnId: string; cause: TurnCause | null } | null): void {
    this.#last = last;
    this.#open = open;
    if (last !== null) setBounded(this.#endedTurns, last, true, MAX_TURNS);
  }

  /** Records the client id of a turn's message before the turn starts. */
  expect(turnId: string, clientId: string): void {
    setBounded(this.#expected, turnId, clientId, MAX_TURNS);
    if (this.#pending === turnId && !this.#options.isReplay) this.#begin(turnId, null);
  }

  /** @param item call in the parent thread that started the subagent */
  spawned(item: string | null, name: string | null): void {
    this.#spawnedBy ??= item;
    this.#name ??= name;
  }

  /** Notes whether a goal is active. If so, Codex begins turns by itself. */
  forGoal(isActive: boolean): void {
    this.#isForGoal = isActive;
  }

  /** Latest text, for the task's summary. */
  setLastText(text: string): void {
    this.#lastText = text;
  }

  started(turnId: string, now: number): void {
    if (this.running === turnId) this.#timers.delete('died');
    if (this.isOver(turnId) || this.running === turnId) return;
    this.#endOpen();
    this.#pending = turnId;
    const isKnown = this.isSubagents || (this.#expected.has(turnId) && !this.#options.isReplay);
    if (isKnown) this.#begin(turnId, null);
    else this.#timers.set('begin', now + (this.#isForGoal ? FOR_GOAL_MS : UNKNOWN_MS));
  }

  completed(turnId: string, turn: Fields): void {
    if (this.isOver(turnId)) return;
    if (this.#pending === turnId) this.#begin(turnId, null);
    if (this.#open?.turnId === turnId) this.#end(endOf(turn, this.#error));
    else {
      setBounded(this.#endedTurns, turnId, true, MAX_TURNS);
      if (this.#open === null) this.#last = turnId;
      this.#revision += 1;
    }
  }

  /** Opens an unknown turn at its first content. */
  enter(turnId: string | null, item: Fields): void {
    if (this.#open?.turnId === turnId) this.#timers.delete('died');
    if (turnId === null || this.isOver(turnId) || this.#open?.turnId === turnId) return;
    if (this.#pending !== turnId) this.#endOpen();
    this.#begin(turnId, item);
  }

  /** Writes a message that starts or steers a turn. @param isNew true if it is not in the log */
  userMessage(turnId: string | null, id: string, item: Fields, isNew: boolean): void {
    if (parseClientId(textOf(item.clientId))?.kind !== 'wake') {
      const messageId = this.#writeUser(turnId, id, item);
      if (!this.isSubagents && this.#open?.turnId === turnId) this.#writer.addAnswered([messageId]);
      return;
    }
    const { cause = null } = this.#open ?? {};
    const isCause = cause?.kind === 'between-run' && cause.trigger.wokenBy !== undefined;
    if (isNew && !isCause) this.#writer.notice(`From Interlude to the agent: ${inputText(item.content)}`);
  }

  status(type: string | null, now: number): void {
    this.#timers.delete('idle');
    if (type === 'active') this.#timers.delete('died');
    if (this.running === null) return;
    if (type === 'idle') this.#timers.set('idle', now + IDLE_MS);
    if (type === 'systemError') this.#timers.set('failed', now + FAILED_MS);
  }

  failed(error: unknown): void {
    const reason = errorText(error);
    if (this.running !== null) this.#error = reason;
    else this.#writer.notice(reason.message, 'error');
  }

  /** Notes that the history is complete. @param isActive true if the thread's status is active */
  caughtUp(isActive: boolean, now: number): void {
    // The turn may have started after that status.
    if (!isActive && this.running !== null) this.#timers.set('died', now + DIED_MS);
  }

  /** Handles the parent's report that the subagent finished. */
  finished(): void {
    if (this.#open !== null && this.isSubagents) this.#end({ kind: 'success' });
  }

  get dueAt(): number | null {
    return earliest(this.#timers.values());
  }

  elapsed(now: number): void {
    for (const [timer, at] of [...this.#timers]) {
      if (at > now) continue;
      this.#timers.delete(timer);
      if (this.#pending !== null) this.#begin(this.#pending, null);
      if (timer === 'begin' || this.#open === null) continue;
      if (timer === 'died') this.#end(DIED);
      else this.#end(timer === 'idle' ? { kind: 'success' } : { kind: 'failed', ...(this.#error ?? NO_REASON) }, true);
    }
  }

  /** Handles the end of the server or the thread. The writer ends the open turn. */
  ended(): void {
    if (this.#pending !== null) this.#begin(this.#pending, null);
    if (this.#open !== null) this.#forget(this.#open.turnId);
  }

  #endOpen(): void {
    if (this.#pending !== null) this.#begin(this.#pending, null);
    if (this.#open !== null) this.#end({ kind: 'success' }, true);
  }

  #begin(turnId: string, item: Fields | null): void {
    const { parent } = this.#options;
    this.#timers.delete('begin');
    this.#pending = null;
    this.#error = null;
    this.#lastText = '';
    this.#revision += 1;
    const cause = parent === null ? this.#causeOf(turnId, item) : null;
    this.#open = { turnId, cause };
    if (cause !== null) this.#writer.begin(cause);
    if (parent === null) return;
    this.#writer.taskStarted({
      task_id: turnId,
      tool_use_id: this.#spawnedBy,
      description: this.#name ?? 'A subagent',
      task_type: 'local_agent',
      parent_task_id: parent.taskOf(parent.running),
    });
    this.#spawnedBy = null;
  }

  #causeOf(turnId: string, item: Fields | null): TurnCause {
    const message = item?.type === 'userMessage' ? item : null;
    const sent = parseClientId(this.#expected.get(turnId) ?? textOf(message?.clientId));
    if (sent?.kind === 'wake') {
      return { kind: 'between-run', trigger: { kind: 'task', taskIds: sent.taskIds, wokenBy: 'interlude' } };
    }
    const id = message === null ? sent?.messageId : this.#writeUser(turnId, textOf(message.id) ?? turnId, message);
    if (id !== undefined) return { kind: 'user', userMessageIds: [id] };
    return { kind: 'between-run', trigger: { kind: this.#isForGoal ? 'goal' : 'unknown', taskIds: [] } };
  }

  /** @returns message id */
  #writeUser(turnId: string | null, id: string, item: Fields): string {
    const sent = parseClientId(textOf(item.clientId));
    const messageId = sent?.kind === 'message' ? sent.messageId : id;
    const taskId = this.taskOf(turnId);
    const about = taskId === null ? {} : { taskId };
    if (sent?.kind === 'message') this.#writer.dashboardMessage(messageId, inputText(item.content), about);
    else this.#writer.userMessage(messageId, inputText(item.content), about);
    return messageId;
  }

  #end(end: TurnEnd, isInferred = false): void {
    const turnId = this.#open?.turnId;
    if (turnId === undefined) return;
    this.#options.onEnding(turnId);
    this.#forget(turnId);
    if (!this.isSubagents) {
      this.#writer.finish(end, { isInferred });
      return;
    }
    const summary = this.#lastText.slice(0, MAX_SUMMARY);
    const error = end.kind === 'failed' ? end.message : null;
    this.#writer.taskCompleted({ task_id: turnId, status: TASK_STATUS[end.kind], summary, error });
  }

  #forget(turnId: string): void {
    this.#open = null;
    this.#last = turnId;
    this.#timers.clear();
    this.#expected.delete(turnId);
    this.#revision += 1;
    setBounded(this.#endedTurns, turnId, true, MAX_TURNS);
  }
}

const TASK_STATUS = { success: 'completed', cancelled: 'stopped', failed: 'failed' } as const;
const NO_REASON = { message: 'Codex failed during this turn without a reason.' };
const DIED: TurnEnd = { kind: 'failed', message: 'Codex ended during this turn.', code: 'agent_exited' };

function endOf({ status, error }: Fields, reported: { message: string; code?: string } | null): TurnEnd {
  if (status === 'interrupted') return { kind: 'cancelled' };
  if (status !== 'failed') return { kind: 'success' };
  return {
    kind: 'failed',
    ...(textOf(fieldsOf(error).message) === null && reported !== null ? reported : errorText(error)),
  };
}

/**
 * `clientUserMessageId`, which Codex returns as `userMessage.clientId`, live and in history: names the dashboard
 * message a turn answers, or the tasks it was woken for. It survives a restart of both sides.
 *
 * @see `codex app-server`, @openai/codex 0.171.0
 */
const PREFIX = 'interlude:';
const WAKE = `${PREFIX}wake:`;
export const MAX_WOKEN_FOR = 16;

export function clientIdOfMessage(messageId: string): string {
  return `${PREFIX}${messageId}`;
}

/** @param name the same for retries of a wake */
export function clientIdOfWake(name: string, taskIds: readonly string[]): string {
  return `${WAKE}${[name, ...taskIds.slice(0, MAX_WOKEN_FOR)].map(encodeURIComponent).join(',')}`;
}

type MessageOrigin = { kind: 'message'; messageId: string } | { kind: 'wake'; taskIds: string[] };

/** @returns null for other origins, such as a terminal */
export function parseClientId(clientId: string | null): MessageOrigin | null {
  if (clientId === null || !clientId.startsWith(PREFIX)) return null;
  if (!clientId.startsWith(WAKE)) return { kind: 'message', messageId: clientId.slice(PREFIX.length) };
  const [, ...taskIds] = clientId.slice(WAKE.length).split(',').map(decoded);
  return { kind: 'wake', taskIds: taskIds.slice(0, MAX_WOKEN_FOR) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
