import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { setBounded } from '../bounded-map';
import type { SessionWriter, TurnCause, TurnEnd } from '../writer/session-writer';
import { errorText, inputText } from './items';

export interface TurnsOptions {
  writer: SessionWriter;
  /** Those of the thread whose subagent this one is. */
  parent: Turns | null;
  /** Nobody has told of the messages that Interlude sent. */
  isReplay: boolean;
  /** The turn is about to end: what it left open is told now. */
  onEnding: (turnId: string) => void;
}

const MAX_TURNS = 500;
const MAX_SUMMARY = 4_000;
/** How long a turn may leave open who began it, without and with a goal that it may be for. */
const UNKNOWN_MS = 3_000;
const FOR_GOAL_MS = 1_000;
/** How long after its thread has become idle, or failed, a turn may still say how it ended. */
const IDLE_MS = 5_000;
const FAILED_MS = 2_000;
/** How long a turn may give no sign of life that runs by its history, and not by its thread's status. */
const DIED_MS = 2_000;

type Timer = 'begin' | 'idle' | 'failed' | 'died';

/**
 * The turns of one thread: who began them, and how they end. Codex says that a turn has begun before it says by whom, so
 * that is told with its first item. A turn of a subagent's thread is a task of the session.
 */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #writer: SessionWriter;
  readonly #timers = new Map<Timer, number>();
  /** By turn: what Interlude called the message that began it. */
  readonly #expected = new Map<string, string>();
  readonly #over = new Map<string, true>();
  /** It has begun, and nobody has said by whom. */
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

  /** The turn that runs. */
  get running(): string | null {
    return this.#open?.turnId ?? this.#pending;
  }

  /** The turn that runs, once it is told. */
  get open(): { readonly turnId: string; readonly cause: TurnCause | null } | null {
    return this.#open;
  }

  /** The last one whose end is told. */
  get last(): string | null {
    return this.#last;
  }

  get isSubagents(): boolean {
    return this.#options.parent !== null;
  }

  /** Another one whenever `open` or `last` has changed. */
  get revision(): number {
    return this.#revision;
  }

  isOver(turnId: string | null): boolean {
    return turnId === null || this.#over.has(turnId);
  }

  /** The task that a turn of a subagent's thread is; null for any other. */
  taskOf(turnId: string | null): string | null {
    return this.isSubagents ? (turnId ?? this.running ?? this.#last) : null;
  }

  /** Goes on where the process before this one stood. @param open of the turn: it still is */
  takeUp(last: string | null, open: { turnId: string; cause: TurnCause | null } | null): void {
    this.#last = last;
    this.#open = open;
    if (last !== null) setBounded(this.#over, last, true, MAX_TURNS);
  }

  /** What Interlude called the message that a turn is for, told before the turn itself. */
  expect(turnId: string, clientId: string): void {
    setBounded(this.#expected, turnId, clientId, MAX_TURNS);
    if (this.#pending === turnId && !this.#options.isReplay) this.#begin(turnId, null);
  }

  /** @param item the call that began it, in its parent's thread */
  spawned(item: string | null, name: string | null): void {
    this.#spawnedBy ??= item;
    this.#name ??= name;
  }

  /** Whether Codex may begin turns by itself. */
  forGoal(isActive: boolean): void {
    this.#isForGoal = isActive;
  }

  /** What the agent said last. */
  said(text: string): void {
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
      setBounded(this.#over, turnId, true, MAX_TURNS);
      if (this.#open === null) this.#last = turnId;
      this.#revision += 1;
    }
  }

  /** Something happens in a turn: one that is not known to be open is opened by it. */
  enter(turnId: string | null, item: Fields): void {
    if (this.#open?.turnId === turnId) this.#timers.delete('died');
    if (turnId === null || this.isOver(turnId) || this.#open?.turnId === turnId) return;
    if (this.#pending !== turnId) this.#endOpen();
    this.#begin(turnId, item);
  }

  /** A message that began or steers a turn. @param isNew it has not been told of */
  userMessage(turnId: string | null, id: string, item: Fields, isNew: boolean): void {
    if (parseClientId(textOf(item.clientId))?.kind !== 'wake') {
      const messageId = this.#writeUser(turnId, id, item);
      if (!this.isSubagents && this.#open?.turnId === turnId) this.#writer.addAnswered([messageId]);
      return;
    }
    const { cause = null } = this.#open ?? {};
    const isItsCause = cause?.kind === 'between-run' && cause.trigger.wokenBy !== undefined;
    if (isNew && !isItsCause) this.#writer.notice(`Interlude entry the agent: ${inputText(item.content)}`);
  }

  status(type: string | null, now: number): void {
    this.#timers.delete('idle');
    if (type === 'active') this.#timers.delete('died');
    if (this.running === null) return;
    if (type === 'idle') this.#timers.set('idle', now + IDLE_MS);
    if (type === 'systemError') this.#timers.set('failed', now + FAILED_MS);
  }

  failed(error: unknown): void {
    const said = errorText(error);
    if (this.running !== null) this.#error = said;
    else this.#writer.notice(said.message, 'error');
  }

  /** The history is told up to now. @param isActive Codex says that a turn runs */
  caughtUp(isActive: boolean, now: number): void {
    // It may have begun since that was said.
    if (!isActive && this.running !== null) this.#timers.set('died', now + DIED_MS);
  }

  /** Its parent says that a subagent has done what it was asked. */
  finished(): void {
    if (this.#open !== null && this.isSubagents) this.#end({ kind: 'success' });
  }

  get dueAt(): number | null {
    return this.#timers.size === 0 ? null : Math.min(...this.#timers.values());
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

  /** The server is gone: the writer says how what was open ended. */
  gone(): void {
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

  /** @returns the id of the message */
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
    setBounded(this.#over, turnId, true, MAX_TURNS);
  }
}

const TASK_STATUS = { success: 'completed', cancelled: 'stopped', failed: 'failed' } as const;
const NO_REASON = { message: 'Codex failed in this turn, and does not say why.' };
const DIED: TurnEnd = { kind: 'failed', message: 'Codex ended in the middle of this turn.', code: 'agent_exited' };

function endOf({ status, error }: Fields, said: { message: string; code?: string } | null): TurnEnd {
  if (status === 'interrupted') return { kind: 'cancelled' };
  if (status !== 'failed') return { kind: 'success' };
  return { kind: 'failed', ...(textOf(fieldsOf(error).message) === null && said !== null ? said : errorText(error)) };
}

/**
 * What Interlude writes into `clientUserMessageId`, and Codex gives back in `userMessage.clientId`, live and in its
 * history: which message of the dashboard a turn answers, or which tasks it was woken for. It is all that is known of
 * that after both have been started anew.
 *
 * @see `codex app-server`, @openai/codex 0.171.0
 */
const PREFIX = 'interlude:';
const WAKE = `${PREFIX}wake:`;
/** Most tasks that one wake names. */
export const MAX_WOKEN_FOR = 16;

export function clientIdOfMessage(messageId: string): string {
  return `${PREFIX}${messageId}`;
}

/** @param name the same for the same wake, told again */
export function clientIdOfWake(name: string, taskIds: readonly string[]): string {
  return `${WAKE}${[name, ...taskIds.slice(0, MAX_WOKEN_FOR)].map(encodeURIComponent).join(',')}`;
}

type MessageOrigin = { kind: 'message'; messageId: string } | { kind: 'wake'; taskIds: string[] };

/** @returns null for what came in another way: from a terminal, say */
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
