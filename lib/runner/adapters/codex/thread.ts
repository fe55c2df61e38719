import { compact, type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { earliest } from '../wire';
import { planEntry } from '../writer/part-events';
import type { SessionWriter, TurnCause } from '../writer/session-writer';
import { boundValue } from '../writer/size-limits';
import { Commands } from './commands';
import { errorText } from './items';
import type { HistoryEntry, HistoryProgress } from './thread-items';
import { type ItemsProgress, ThreadItems } from './thread-items';
import { Turns } from './turns';

/** Progress of a thread: another process continues from it without gaps or duplicates. */
export interface ThreadProgress extends HistoryProgress, ItemsProgress {
  cause: TurnCause | null;
  /** Commands running in the background. */
  tasks: string[];
}

interface ThreadOptions {
  id: string;
  writer: SessionWriter;
  /** Parent of a subagent's thread. */
  parent: CodexThread | null;
  /** True if the log lacks the messages that Interlude sent. */
  isReplay: boolean;
}

/**
 * Writes one Codex thread as a session. A subagent's thread writes into its parent's session, each of its turns as a
 * task.
 *
 * @see `codex app-server`, @openai/codex 0.171.0
 */
export class CodexThread {
  readonly id: string;
  readonly parent: CodexThread | null;
  readonly writer: SessionWriter;
  readonly turns: Turns;
  readonly items: ThreadItems;
  readonly #commands: Commands;
  #isWhole = false;
  #goal: { objective: string; status: string } | null = null;
  #diff: string | null = null;
  #revision = 0;

  constructor({ id, writer, parent, isReplay }: ThreadOptions) {
    this.id = id;
    this.writer = writer;
    this.parent = parent;
    const onEnding = (turnId: string) => this.items.turnEnding(turnId);
    this.#commands = new Commands(writer);
    this.turns = new Turns({ writer, parent: parent?.turns ?? null, isReplay, onEnding });
    this.items = new ThreadItems(writer, this.turns, this.#commands);
  }

  get openTurn(): string | null {
    return this.turns.running;
  }

  get progress(): ThreadProgress {
    return {
      lastTurn: this.turns.last,
      openTurn: this.turns.open?.turnId ?? null,
      isWhole: this.#isWhole,
      cause: this.turns.open?.cause ?? null,
      tasks: this.#commands.running,
      ...this.items.progress,
    };
  }

  /** Changes whenever `progress` does. */
  get revision(): number {
    return this.#revision + this.turns.revision + this.items.revision;
  }

  /** Notes that the thread was created while connected, so its history is complete. */
  isNew(): void {
    if (this.#isWhole || this.turns.last !== null || this.turns.open !== null) return;
    this.#isWhole = true;
    this.#revision += 1;
  }

  /**
   * Resumes from an earlier process.
   * @param turnRunId run left open by the turn
   */
  restore(progress: ThreadProgress, turnRunId: string | null, taskIds: readonly string[]): void {
    const { lastTurn, openTurn, cause } = progress;
    this.#isWhole = progress.isWhole;
    this.#commands.restore(progress.tasks.filter((id) => taskIds.includes(id)));
    const isOpen = this.parent === null ? turnRunId !== null : taskIds.includes(openTurn ?? '');
    const open = openTurn !== null && isOpen ? { turnId: openTurn, cause } : null;
    this.turns.restore(open === null ? (openTurn ?? lastTurn) : lastTurn, open);
    if (open !== null) this.items.restore(progress);
  }

  stopping(processId: string): void {
    this.#commands.stopping(processId);
  }

  /** Handles a new history entry. */
  happened({ kind, turnId, fields, isOld }: HistoryEntry, now: number): void {
    if (kind === 'turnStarted') this.turns.started(turnId, now);
    else if (kind === 'turnCompleted') this.turns.completed(turnId, fields);
    else if (!(isOld || this.turns.isOver(turnId)) || this.writer.isRunning(textOf(fields.id) ?? '')) {
      this.items.completed(turnId, fields);
    }
  }

  failed(error: unknown, willRetry: boolean): void {
    if (willRetry) this.writer.notice(`Codex is retrying: ${errorText(error).message}`, 'warning');
    else this.turns.failed(error);
  }

  goal(entry: Fields | null): void {
    const objective = textOf(entry?.objective) ?? '';
    const status = textOf(entry?.status) ?? '';
    const before = this.#goal;
    this.#goal = entry === null ? null : { objective, status };
    this.turns.forGoal(status === 'active');
    if (entry === null && before !== null && before.status !== 'complete') this.writer.notice('The goal was cleared.');
    if (entry === null || (before?.status === status && before.objective === objective)) return;
    const word = GOAL_WORDS.get(status) ?? status;
    this.writer.notice(`${word}: ${objective}`, status === 'active' || status === 'complete' ? 'info' : 'warning');
  }

  plan(turnId: string | null, entry: Fields): void {
    const entries = listOf(entry.plan)
      .map(fieldsOf)
      .map(({ step, status }) => planEntry(step, status));
    this.turns.enter(turnId, {});
    if (this.parent !== null) this.keep('turn/plan/updated', entry);
    else this.writer.plan(`${turnId ?? this.id}/plan`, entries);
  }

  /** Notes that a subagent's thread started in this turn. */
  spawns(item: Fields): void {
    const id = textOf(item.id) ?? '';
    const parts = this.writer.parts(this.turns.taskOf(this.turns.running));
    parts.startCall(id, 'spawn_agent');
    parts.setArgs(id, compact({ agent: item.agentPath, model: item.model }));
    parts.setResult(id, 'It runs in parallel with this turn.');
  }

  /** Diff of the open turn; Codex repeats it with every event. */
  diff(entry: Fields): void {
    const diff = textOf(entry.diff);
    if (diff === this.#diff) return;
    this.#diff = diff;
    this.keep('turn/diff/updated', entry);
  }

  /** Stores an internal message, not shown. */
  keep(name: string, value: object): void {
    this.writer.custom(`codex:${name}`, boundValue(value));
  }

  get dueAt(): number | null {
    return earliest([this.turns.dueAt, this.#commands.dueAt]);
  }

  elapsed(now: number): void {
    this.#commands.elapsed(now);
    this.turns.elapsed(now);
  }

  /** Handles the end of the server or the thread. The writer ends open work. */
  ended(): void {
    this.turns.ended();
    this.items.turnGone();
    this.items.reconnected();
    this.#commands.clear();
  }
}

const GOAL_WORDS = new Map([
  ['active', 'Goal'],
  ['paused', 'The goal is paused'],
  ['blocked', 'The goal is blocked'],
  ['usageLimited', 'The goal is on hold: usage limit reached'],
  ['budgetLimited', 'The goal’s budget is used up'],
  ['complete', 'The goal is reached'],
]);

/** Dispatches an app-server notification that concerns only its thread. */
export function handleNotification(thread: CodexThread, method: string, params: Fields, now: number): void {
  const { items, turns, writer } = thread;
  const turn = fieldsOf(params.turn);
  const turnId = textOf(turn.id) ?? textOf(params.turnId);
  const item = fieldsOf(params.item);
  const itemId = textOf(params.itemId) ?? '';
  const delta = textOf(params.delta) ?? '';
  switch (method) {
    case 'turn/started':
      if (turnId !== null) turns.started(turnId, now);
      break;
    case 'turn/completed':
      if (turnId !== null) turns.completed(turnId, turn);
      break;
    case 'item/started':
      items.started(turnId, item);
      break;
    case 'item/completed':
      items.completed(turnId, item);
      break;
    case 'item/agentMessage/delta':
    case 'item/plan/delta':
      items.delta(turnId, itemId, 'text', delta);
      break;
    case 'item/reasoning/summaryTextDelta':
    case 'item/reasoning/textDelta':
      items.delta(turnId, itemId, 'thought', delta);
      break;
    case 'item/reasoning/summaryPartAdded':
      if (numberOf(params.summaryIndex)) items.delta(turnId, itemId, 'thought', '\n\n');
      break;
    case 'item/commandExecution/outputDelta':
      items.wrote(itemId, delta);
      break;
    case 'thread/status/changed':
      turns.status(textOf(fieldsOf(params.status).type), now);
      break;
    case 'turn/plan/updated':
      thread.plan(turnId, params);
      break;
    case 'turn/diff/updated':
      thread.diff(params);
      break;
    case 'thread/goal/updated':
      thread.goal(fieldsOf(params.goal));
      break;
    case 'thread/goal/cleared':
      thread.goal(null);
      break;
    case 'error':
      thread.failed(params.error, params.willRetry === true);
      break;
    case 'model/rerouted':
      writer.notice(`Codex switched to another model: ${textOf(params.toModel) ?? 'unknown'}.`);
      break;
    case 'guardianWarning':
      writer.notice(textOf(params.message) ?? 'Codex sent a warning without a message.', 'warning');
      break;
    default:
      thread.keep(method, params);
  }
}
