import type { AgUiEvent, TurnTrigger } from '../ag-ui';
import {
  CUSTOM,
  caption,
  customName,
  customValue,
  idField,
  pick,
  pickId,
  pickNumber,
  pickText,
  pickTime,
  stringList,
  taskEndOf,
  taskEventId,
} from '../event-fields';
import { textOf } from '../fields';
import { readInterlude } from '../interlude-metadata';
import { MAX_ID_LENGTH } from '../limits';
import { comparePositions, type Position } from '../position';
import type { Task } from '../read-models';
import type { EventEntry, Placement } from './placement';

/** Whether a run begins by itself without saying why: then it may answer any task that has ended. */
export function startsWithoutCause(event: AgUiEvent): boolean {
  return event.type === 'RUN_STARTED' && textOf(event.parentRunId) !== null && !readInterlude(event).trigger;
}

/** Whether it says of every task that runs, or may, what becomes of it: the agent's process ends, its runner goes or is back. */
export function touchesEveryTask(event: AgUiEvent): boolean {
  const name = customName(event);
  return name === CUSTOM.sessionEnded || name === CUSTOM.runnerBack || (name === CUSTOM.runnerAway && !goesOn(event));
}

/** The agent is not a child of the runner that went, and neither are its tasks. */
function goesOn(event: AgUiEvent): boolean {
  return customValue(event).agent_goes_on === true;
}

/** The tasks that a run says it was told of, by its trigger or while it ran. */
export function tasksTold(event: AgUiEvent): TaskRef[] {
  const { trigger, foldedTaskIds = [] } = readInterlude(event);
  return [...tasksOf(trigger), ...foldedTaskIds.map((id) => ({ id, runId: null }))];
}

function tasksOf(trigger: Pick<TurnTrigger, 'taskIds' | 'taskRunIds'> | undefined): TaskRef[] {
  return stringList(trigger?.taskIds).map((id, index) => ({ id, runId: trigger?.taskRunIds?.[index] ?? null }));
}

/** The tasks whose results a message carries to the agent. */
export function tasksCarried(event: AgUiEvent): TaskRef[] {
  return tasksOf(readInterlude(event).carries);
}

/** A task, and the run of it if that is named. */
export type TaskRef = Pick<Task, 'id' | 'runId'>;

/** The runs of one task by position, ascending. */
interface Runs {
  all: Position[];
  byRunId: Map<string | null, Position[]>;
}

/** A session's tasks, fed task by task and placement by placement, so that a server can let others run in between. */
export class TaskLedger {
  readonly #byPosition = new Map<Position, Task>();
  readonly #byId = new Map<string, Runs>();
  readonly #changed = new Set<string>();
  /** Those that run, or may turn out to. */
  readonly #open = new Map<Position, Task>();
  readonly #owner: { sessionId: string; agentId: string };

  constructor(owner: { sessionId: string; agentId: string }) {
    this.#owner = owner;
  }

  /** The session has this task. Runs of one id come in the order in which they began. */
  know(task: Task): void {
    const { id, runId, position } = task;
    const before = this.#byPosition.get(position);
    this.#byPosition.set(position, task);
    if (mayRun(task)) this.#open.set(position, task);
    else this.#open.delete(position);
    const runs: Runs = this.#byId.get(id) ?? { all: [], byRunId: new Map() };
    this.#byId.set(id, runs);
    if (before === undefined) runs.all.push(position);
    if (before !== undefined && before.runId === runId) return;
    // its run was named only later: what is looked for is nearly always the last
    const unnamed = before === undefined ? undefined : runs.byRunId.get(before.runId);
    unnamed?.splice(unnamed.lastIndexOf(position), 1);
    const named = runs.byRunId.get(runId) ?? [];
    const earlier = named.findLastIndex((other) => comparePositions(other, position) < 0);
    named.splice(earlier + 1, 0, position);
    runs.byRunId.set(runId, named);
  }

  /** Those that run, and those that are only presumed to be lost. */
  open(): Iterable<Task> {
    return this.#open.values();
  }

  *changed(): Generator<Task> {
    for (const position of this.#changed) yield this.#byPosition.get(position) as Task;
  }

  /** Yields after each task that it gives up, because there may be many. */
  *apply(placement: Pick<Placement, 'entry' | 'turnId' | 'turns' | 'isRetold'>): Generator<void> {
    const { entry, turnId, turns, isRetold = false } = placement;
    const name = customName(entry.event);
    if (name?.startsWith('task:')) this.#applyTaskEvent(name, entry, turnId, isRetold);
    if (name === CUSTOM.sessionEnded) yield* this.#endAll(entry);
    if (name === CUSTOM.runnerAway && !goesOn(entry.event)) yield* this.#missAll(entry);
    if (name === CUSTOM.runnerBack) yield* this.hearAgain();
    if (name === CUSTOM.taskTold) this.#applyTold(entry);
    this.#applyCarried(entry);
    if (turnId === null) return;
    const opened = entry.event.type === 'RUN_STARTED' ? turns.find((turn) => turn.id === turnId)?.trigger : null;
    for (const { id, runId } of [...tasksTold(entry.event), ...tasksOf(opened ?? undefined)]) {
      const task = this.find(id, runId);
      if (task !== undefined && task.answeredInTurnId !== turnId) this.#put({ ...task, answeredInTurnId: turnId });
    }
  }

  /** The agent's process has ended: nobody is left to say how they end. */
  *#endAll({ event, occurredAt }: EventEntry): Generator<void> {
    const reason = pickText(customValue(event), 'reason');
    const error = `The agent has ended${reason === null ? '' : ` (${reason})`}, and nothing told how this ended.`;
    for (const { presumed, ...task } of this.#open.values()) {
      if (presumed !== undefined) this.#put(task);
      else this.#put({ ...task, status: 'lost', error: task.error ?? caption(error), endedAt: occurredAt });
      yield;
    }
  }

  /** Nothing is heard of whoever would tell how they end: most likely they have ended, too. */
  *#missAll({ event, occurredAt }: EventEntry): Generator<void> {
    const value = customValue(event);
    const since = pickTime(value, 'since') ?? occurredAt;
    const whom = value.is_silent === true ? 'agent' : 'runner';
    const error = `Nothing has been heard of its ${whom} since ${new Date(since).toISOString()}, and nothing told how it ended.`;
    for (const task of this.#open.values()) {
      if (task.status === 'running') {
        const endedAt = Math.max(since, task.startedAt);
        this.#put({ ...task, status: 'lost', presumed: 'unheard', error: task.error ?? error, endedAt });
      }
      yield;
    }
  }

  /** What was presumed because nothing was heard is taken back. */
  *hearAgain(): Generator<void> {
    for (const task of this.#open.values()) {
      if (task.presumed === 'unheard') this.#put(runningAgain(task));
      yield;
    }
  }

  #applyTold({ event }: EventEntry): void {
    const value = customValue(event);
    const [id, sessionId, turnId] = ['task_id', 'session_id', 'turn_id'].map((field) => pickId(value, field));
    const task = id ? this.find(id, pickId(value, 'run_id')) : undefined;
    if (task === undefined || task.toldElsewhere !== null || !sessionId || !turnId) return;
    this.#put({ ...task, toldElsewhere: { sessionId, turnId } });
  }

  /** Notes which message carries the result, and takes that back if its delivery fails. */
  #applyCarried({ event, receivedAt }: EventEntry): void {
    const isFailure = customName(event) === CUSTOM.messageDelivery && customValue(event).delivery === 'failed';
    if (!isFailure && event.type !== 'TEXT_MESSAGE_START') return;
    const messageId = isFailure ? pickId(customValue(event), 'message_id') : idField(event, 'messageId');
    for (const position of readInterlude(event).carries?.positions ?? []) {
      const task = this.#byPosition.get(position);
      if (task === undefined || messageId === null) continue;
      if (!isFailure) this.#put({ ...task, carriedBy: messageId });
      else if (task.carriedBy === messageId) {
        const { carriedBy: _, ...left } = task;
        this.#put({ ...left, unansweredSince: receivedAt });
      }
    }
  }

  /** Marks tasks, by position, whose results have waited too long for a turn. */
  markUndelivered(positions: Iterable<Position>): void {
    for (const position of positions) {
      const task = this.#byPosition.get(position);
      if (task?.unansweredSince !== undefined && !task.isUndelivered) this.#put({ ...task, isUndelivered: true });
    }
  }

  #applyTaskEvent(name: string, entry: EventEntry, toldIn: string | null, isRetold: boolean): void {
    const turnId = toldIn?.startsWith('task:') ? null : toldIn;
    const id = taskEventId(entry.event);
    if (id === null) return;
    const value = customValue(entry.event);
    const runId = pickId(value, 'run_id', 'runId');
    const found = this.find(id, runId);
    if (name === CUSTOM.taskOutput) {
      // Its row would change with every line else.
      if (found?.hasOutput === false) this.#put({ ...found, hasOutput: true });
      return;
    }
    const starts = name === CUSTOM.taskStarted;
    // A task that ended and starts again under the same name is another run of it.
    const isAnother = found?.endedAt !== null && !isRetold && (runId === null || found?.runId !== runId);
    const known = starts && isAnother ? undefined : found;
    const task = known ?? this.#born(id, runId, entry, starts ? turnId : null);
    const { reportedBy = null, assignedBy = null } = readInterlude(entry.event);
    const said = reportedBy !== null && isFinal(task) ? withoutOutcome(value) : value;
    const next = withFields(withEnd(task, entry, reportedBy), said, starts ? turnId : null);
    const stands = saysOtherwise(task, next, entry.event) ? outcomeOf(task, next) : {};
    // the agent learns of an end between turns only by another turn
    const isAlone = !hasEnded(task.status) && turnId?.startsWith('none:') === true;
    const awaited = isAlone ? { unansweredSince: entry.receivedAt } : {};
    this.#put({ ...next, ...stands, ...awaited, assignedBy: assignedBy ?? task.assignedBy });
  }

  /** The run asked for, else the newest run without a name; the newest of all if no run is asked for. */
  find(id: string, runId: string | null): Task | undefined {
    const runs = this.#byId.get(id);
    const position =
      runId === null ? runs?.all.at(-1) : (runs?.byRunId.get(runId) ?? runs?.byRunId.get(null) ?? []).at(-1);
    return position === undefined ? undefined : this.#byPosition.get(position);
  }

  #born(id: string, runId: string | null, entry: EventEntry, turnId: string | null): Task {
    return {
      id,
      runId,
      ...this.#owner,
      kind: 'task',
      description: id,
      status: 'running',
      summary: null,
      exitCode: null,
      error: null,
      outputFile: null,
      hasOutput: false,
      usage: null,
      lastToolName: null,
      toolCallId: null,
      parentTaskId: null,
      startedAt: entry.occurredAt,
      endedAt: null,
      startedInTurnId: turnId,
      answeredInTurnId: null,
      reportedBy: null,
      assignedBy: null,
      toldElsewhere: null,
      position: entry.position,
    };
  }

  #put(changed: Task): void {
    const task = awaitsTurn(changed) ? changed : withoutWait(changed);
    this.know(task);
    this.#changed.add(task.position);
  }
}

/** True while a turn has yet to take up the result. A stopped task has none; a child's goes to its parent. */
function awaitsTurn({ status, answeredInTurnId, toldElsewhere, carriedBy, parentTaskId }: Task): boolean {
  const hasResult = status === 'completed' || status === 'failed';
  return (
    hasResult && parentTaskId === null && answeredInTurnId === null && toldElsewhere === null && carriedBy === undefined
  );
}

function withoutWait(task: Task): Task {
  if (task.unansweredSince === undefined && task.isUndelivered === undefined) return task;
  const { unansweredSince: _, isUndelivered: __, ...rest } = task;
  return rest;
}

function withFields(task: Task, value: Record<string, unknown>, startedInTurnId: string | null): Task {
  const type = pickText(value, 'task_type', 'kind');
  const usage = pick(value, 'usage');
  const summary = pickText(value, 'summary');
  return {
    ...task,
    runId: task.runId ?? pickId(value, 'run_id', 'runId'),
    kind: type === null ? task.kind : normaliseTaskKind(type.slice(0, MAX_ID_LENGTH)),
    // A progress report describes what the task does at the moment; its name is what it was started with.
    description:
      task.description === task.id ? (caption(pickText(value, 'description')) ?? task.description) : task.description,
    summary: caption(summary) ?? task.summary,
    exitCode: pickNumber(value, 'exit_code', 'exitCode') ?? task.exitCode ?? exitCodeIn(summary),
    error: caption(pickText(value, 'error')) ?? task.error,
    outputFile: caption(pickText(value, 'output_file', 'outputFile')) || task.outputFile,
    usage: typeof usage === 'object' ? usageOf(usage as Record<string, unknown>) : task.usage,
    lastToolName: pickId(value, 'last_tool_name', 'lastToolName') ?? task.lastToolName,
    toolCallId: pickId(value, 'tool_use_id', 'toolCallId') ?? task.toolCallId,
    parentTaskId: pickId(value, 'parent_task_id', 'parentTaskId') ?? task.parentTaskId,
    startedInTurnId: task.startedInTurnId ?? startedInTurnId,
  };
}

/** A shell's summary ends with its exit code if the agent has no field for it. */
function exitCodeIn(summary: string | null): number | null {
  const code = /\bexit code (\d{1,3})\)?\.?$/.exec(summary?.slice(-32) ?? '')?.[1];
  return code === undefined ? null : Number(code);
}

function usageOf(usage: Record<string, unknown>): Task['usage'] {
  return {
    totalTokens: pickNumber(usage, 'total_tokens', 'totalTokens'),
    toolUses: pickNumber(usage, 'tool_uses', 'toolUses'),
    durationMs: pickNumber(usage, 'duration_ms', 'durationMs'),
  };
}

/** What another session says about the outcome does not count against what the task's own has said. */
function withoutOutcome({ summary, exit_code, exitCode, error, ...rest }: Record<string, unknown>) {
  return rest;
}

/** The firmest report of an end stands, and of equally firm ones the first. */
function withEnd(task: Task, { event, occurredAt }: EventEntry, reportedBy: string | null): Task {
  const status = taskEndOf(event);
  if (status === null) return task.presumed !== undefined && reportedBy === null ? runningAgain(task) : task;
  const told = { status, reportedBy, ...(readInterlude(event).presumed ? { presumed: 'unlisted' as const } : {}) };
  if (!overrules(told, task)) return task;
  const endedAt = pickTime(customValue(event), 'ended_at', 'endedAt') ?? occurredAt;
  // What was guessed, or reported with another end, does not apply to this one.
  const isOther = (task.reportedBy !== null || task.status === 'lost') && task.status !== status;
  const outcome = isOther ? { summary: null, exitCode: null, error: null } : {};
  const { presumed: _, ...known } = task;
  return { ...known, ...outcome, ...told, endedAt };
}

/** Whether an end is told that is not the one that stands. */
function saysOtherwise(before: Task, next: Task, event: AgUiEvent): boolean {
  const told = taskEndOf(event);
  return told !== null && told !== next.status && hasEnded(before.status) && before.status === next.status;
}

/** Its own words stand with the end that stands; the other end may only say more of it. */
function outcomeOf(before: Task, next: Task): Pick<Task, 'summary' | 'exitCode' | 'error'> {
  return { summary: before.summary ?? next.summary, exitCode: before.exitCode, error: before.error };
}

/** It was only presumed to be lost, and is told of. */
function runningAgain({ presumed: _, ...task }: Task): Task {
  return { ...task, status: 'running', error: null, endedAt: null };
}

/** The status of a run, and which other session reported it, if one did, or that nobody did. */
type Standing = Pick<Task, 'status' | 'reportedBy' | 'presumed'>;

/**
 * Whether a report about a run replaces an earlier one. Of equally firm reports the first stands; a report by another
 * session gives way to one by the task's own, and `lost`, which is a guess, to any end. What is only presumed gives way
 * to whatever is told.
 */
function overrules(told: Standing, before: Standing): boolean {
  return firmness(told) > firmness(before);
}

/** Whether the task's own session has said how it ended: no other report overrules that. */
function isFinal({ status, reportedBy }: Standing): boolean {
  return hasEnded(status) && reportedBy === null;
}

/** Whether it may still turn out to run: it does, or nobody said that it does not. */
export function mayRun({ status, presumed }: Standing): boolean {
  return status === 'running' || presumed !== undefined;
}

/** Whether it was reported to have ended: `lost` is only a guess. */
export function hasEnded(status: Task['status']): boolean {
  return status !== 'running' && status !== 'lost';
}

function firmness({ status, reportedBy, presumed }: Standing): number {
  if (status === 'running') return 0;
  if (presumed !== undefined) return 1;
  return (hasEnded(status) ? 4 : 2) + (reportedBy === null ? 1 : 0);
}

const KINDS: Record<string, string | undefined> = { local_bash: 'shell', bash: 'shell', local_agent: 'subagent' };

function normaliseTaskKind(type: string): string {
  return Object.hasOwn(KINDS, type) ? (KINDS[type] ?? type) : type;
}
