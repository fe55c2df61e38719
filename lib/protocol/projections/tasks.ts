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

/** True for a run that the agent started without naming a trigger. It may answer any ended task. */
export function startsWithoutCause(event: AgUiEvent): boolean {
  return event.type === 'RUN_STARTED' && textOf(event.parentRunId) !== null && !readInterlude(event).trigger;
}

/** True for events that change every running task: the agent's process ends, its runner leaves or returns. */
export function affectsEveryTask(event: AgUiEvent): boolean {
  const name = customName(event);
  return (
    name === CUSTOM.sessionEnded || name === CUSTOM.runnerBack || (name === CUSTOM.runnerAway && !agentContinues(event))
  );
}

/** True if agent and tasks outlive the absent runner, because they are not its child processes. */
function agentContinues(event: AgUiEvent): boolean {
  return customValue(event).agent_goes_on === true;
}

/** The tasks whose ends a run received, in its trigger or while running. */
export function reportedTasks(event: AgUiEvent): TaskRef[] {
  const { trigger, foldedTaskIds = [] } = readInterlude(event);
  return [...tasksOf(trigger), ...foldedTaskIds.map((id) => ({ id, runId: null }))];
}

function tasksOf(trigger: Pick<TurnTrigger, 'taskIds' | 'taskRunIds'> | undefined): TaskRef[] {
  return stringList(trigger?.taskIds).map((id, index) => ({ id, runId: trigger?.taskRunIds?.[index] ?? null }));
}

/** The tasks whose results a message delivers to the agent. */
export function deliveredTasks(event: AgUiEvent): TaskRef[] {
  return tasksOf(readInterlude(event).carries);
}

/** A task, with its run if named. */
export type TaskRef = Pick<Task, 'id' | 'runId'>;

/** Positions of a task's runs, ascending. */
interface Runs {
  all: Position[];
  byRunId: Map<string | null, Position[]>;
}

/** Folds a session's tasks in steps, so the server can yield in between. */
export class TaskLedger {
  readonly #byPosition = new Map<Position, Task>();
  readonly #byId = new Map<string, Runs>();
  readonly #changed = new Set<string>();
  /** Tasks that run or may still run. */
  readonly #open = new Map<Position, Task>();
  readonly #owner: { sessionId: string; agentId: string };

  constructor(owner: { sessionId: string; agentId: string }) {
    this.#owner = owner;
  }

  /** Loads or updates a task. Load the runs of one id in order of their start. */
  load(task: Task): void {
    const { id, runId, position } = task;
    const before = this.#byPosition.get(position);
    this.#byPosition.set(position, task);
    if (mayBeRunning(task)) this.#open.set(position, task);
    else this.#open.delete(position);
    const runs: Runs = this.#byId.get(id) ?? { all: [], byRunId: new Map() };
    this.#byId.set(id, runs);
    if (before === undefined) runs.all.push(position);
    if (before !== undefined && before.runId === runId) return;
    // The run has been named since. The match is nearly always the last entry.
    const unnamed = before === undefined ? undefined : runs.byRunId.get(before.runId);
    unnamed?.splice(unnamed.lastIndexOf(position), 1);
    const named = runs.byRunId.get(runId) ?? [];
    const earlier = named.findLastIndex((other) => comparePositions(other, position) < 0);
    named.splice(earlier + 1, 0, position);
    runs.byRunId.set(runId, named);
  }

  /** Running tasks, and tasks presumed lost. */
  open(): Iterable<Task> {
    return this.#open.values();
  }

  *changed(): Generator<Task> {
    for (const position of this.#changed) yield this.#byPosition.get(position) as Task;
  }

  /** Applies an event. Yields after each task it marks as lost, because there may be many. */
  *apply(placement: Pick<Placement, 'entry' | 'turnId' | 'turns' | 'isRepeated'>): Generator<void> {
    const { entry, turnId, turns, isRepeated = false } = placement;
    const name = customName(entry.event);
    if (name?.startsWith('task:')) this.#applyTaskEvent(name, entry, turnId, isRepeated);
    if (name === CUSTOM.sessionEnded) yield* this.#endAll(entry);
    if (name === CUSTOM.runnerAway && !agentContinues(entry.event)) yield* this.#presumeAllLost(entry);
    if (name === CUSTOM.runnerBack) yield* this.revertUnheard();
    if (name === CUSTOM.taskTold) this.#applyReportedElsewhere(entry);
    this.#applyDelivery(entry);
    if (turnId === null) return;
    const opened = entry.event.type === 'RUN_STARTED' ? turns.find((turn) => turn.id === turnId)?.trigger : null;
    for (const { id, runId } of [...reportedTasks(entry.event), ...tasksOf(opened ?? undefined)]) {
      const task = this.find(id, runId);
      if (task !== undefined && task.answeredInTurnId !== turnId) this.#put({ ...task, answeredInTurnId: turnId });
    }
  }

  /** Marks open tasks as lost after the end of the agent's process. */
  *#endAll({ event, occurredAt }: EventEntry): Generator<void> {
    const reason = pickText(customValue(event), 'reason');
    const error = `The agent ended${reason === null ? '' : ` (${reason})`} before it reported how this task ended.`;
    for (const { presumed, ...task } of this.#open.values()) {
      if (presumed !== undefined) this.#put(task);
      else this.#put({ ...task, status: 'lost', error: task.error ?? caption(error), endedAt: occurredAt });
      yield;
    }
  }

  /** Presumes running tasks lost while their reporter is silent. */
  *#presumeAllLost({ event, occurredAt }: EventEntry): Generator<void> {
    const value = customValue(event);
    const since = pickTime(value, 'since') ?? occurredAt;
    const reporter = value.is_silent === true ? 'agent' : 'runner';
    const error = `No signal from its ${reporter} since ${new Date(since).toISOString()}. How the task ended is unknown.`;
    for (const task of this.#open.values()) {
      if (task.status === 'running') {
        const endedAt = Math.max(since, task.startedAt);
        this.#put({ ...task, status: 'lost', presumed: 'unheard', error: task.error ?? error, endedAt });
      }
      yield;
    }
  }

  /** Reverts what `#presumeAllLost` presumed. */
  *revertUnheard(): Generator<void> {
    for (const task of this.#open.values()) {
      if (task.presumed === 'unheard') this.#put(resumed(task));
      yield;
    }
  }

  #applyReportedElsewhere({ event }: EventEntry): void {
    const value = customValue(event);
    const [id, sessionId, turnId] = ['task_id', 'session_id', 'turn_id'].map((field) => pickId(value, field));
    const task = id ? this.find(id, pickId(value, 'run_id')) : undefined;
    if (task === undefined || task.toldElsewhere !== null || !sessionId || !turnId) return;
    this.#put({ ...task, toldElsewhere: { sessionId, turnId } });
  }

  /** Records the message that delivers a result, and removes it if the delivery fails. */
  #applyDelivery({ event, receivedAt }: EventEntry): void {
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

  /** Marks tasks whose results have waited too long for a turn. */
  markUndelivered(positions: Iterable<Position>): void {
    for (const position of positions) {
      const task = this.#byPosition.get(position);
      if (task?.unansweredSince !== undefined && !task.isUndelivered) this.#put({ ...task, isUndelivered: true });
    }
  }

  #applyTaskEvent(name: string, entry: EventEntry, reportTurnId: string | null, isRepeated: boolean): void {
    const turnId = reportTurnId?.startsWith('task:') ? null : reportTurnId;
    const id = taskEventId(entry.event);
    if (id === null) return;
    const value = customValue(entry.event);
    const runId = pickId(value, 'run_id', 'runId');
    const found = this.find(id, runId);
    if (name === CUSTOM.taskOutput) {
      // Not on every line of output: the row would change each time.
      if (found?.hasOutput === false) this.#put({ ...found, hasOutput: true });
      return;
    }
    const starts = name === CUSTOM.taskStarted;
    // A start after an end is another run of the task.
    const isNewRun = found?.endedAt !== null && !isRepeated && (runId === null || found?.runId !== runId);
    const known = starts && isNewRun ? undefined : found;
    const task = known ?? this.#create(id, runId, entry, starts ? turnId : null);
    const { reportedBy = null, assignedBy = null } = readInterlude(entry.event);
    const fields = reportedBy !== null && isFinal(task) ? withoutOutcome(value) : value;
    const next = withFields(withEnd(task, entry, reportedBy), fields, starts ? turnId : null);
    const kept = contradictsEnd(task, next, entry.event) ? knownOutcome(task, next) : {};
    // An end outside any turn reaches the agent only in a later turn.
    const isOutsideTurn = !isReportedEnd(task.status) && turnId?.startsWith('none:') === true;
    const awaited = isOutsideTurn ? { unansweredSince: entry.receivedAt } : {};
    this.#put({ ...next, ...kept, ...awaited, assignedBy: assignedBy ?? task.assignedBy });
  }

  /** The named run, else the newest unnamed one. Without a `runId`, the newest of all. */
  find(id: string, runId: string | null): Task | undefined {
    const runs = this.#byId.get(id);
    const position =
      runId === null ? runs?.all.at(-1) : (runs?.byRunId.get(runId) ?? runs?.byRunId.get(null) ?? []).at(-1);
    return position === undefined ? undefined : this.#byPosition.get(position);
  }

  #create(id: string, runId: string | null, entry: EventEntry, turnId: string | null): Task {
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
    const task = awaitsTurn(changed) ? changed : withoutUnanswered(changed);
    this.load(task);
    this.#changed.add(task.position);
  }
}

/** True until a turn receives the result. A stopped task has none; a child's result goes to its parent. */
function awaitsTurn({ status, answeredInTurnId, toldElsewhere, carriedBy, parentTaskId }: Task): boolean {
  const hasResult = status === 'completed' || status === 'failed';
  return (
    hasResult && parentTaskId === null && answeredInTurnId === null && toldElsewhere === null && carriedBy === undefined
  );
}

function withoutUnanswered(task: Task): Task {
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
    // Keeps the name from the start, because a progress report describes the current step.
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

/** Reads the exit code at the end of a shell's summary, for agents without a field for it. */
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

/** Drops the outcome fields of another session's report after the task's own session has reported the end. */
function withoutOutcome({ summary, exit_code, exitCode, error, ...rest }: Record<string, unknown>) {
  return rest;
}

/** Applies a reported end if it is more certain than the known one. */
function withEnd(task: Task, { event, occurredAt }: EventEntry, reportedBy: string | null): Task {
  const status = taskEndOf(event);
  if (status === null) return task.presumed !== undefined && reportedBy === null ? resumed(task) : task;
  const end = { status, reportedBy, ...(readInterlude(event).presumed ? { presumed: 'unlisted' as const } : {}) };
  if (!overrides(end, task)) return task;
  const endedAt = pickTime(customValue(event), 'ended_at', 'endedAt') ?? occurredAt;
  // A guessed or contradicting outcome does not apply to this end.
  const isOther = (task.reportedBy !== null || task.status === 'lost') && task.status !== status;
  const outcome = isOther ? { summary: null, exitCode: null, error: null } : {};
  const { presumed: _, ...known } = task;
  return { ...known, ...outcome, ...end, endedAt };
}

/** True if the event reports another end than the known one. */
function contradictsEnd(before: Task, next: Task, event: AgUiEvent): boolean {
  const end = taskEndOf(event);
  return end !== null && end !== next.status && isReportedEnd(before.status) && before.status === next.status;
}

/** Keeps the known outcome; a contradicting report may only add a summary. */
function knownOutcome(before: Task, next: Task): Pick<Task, 'summary' | 'exitCode' | 'error'> {
  return { summary: before.summary ?? next.summary, exitCode: before.exitCode, error: before.error };
}

/** Reverts a presumed loss. */
function resumed({ presumed: _, ...task }: Task): Task {
  return { ...task, status: 'running', error: null, endedAt: null };
}

/** The status of a run and its source. */
type TaskOutcome = Pick<Task, 'status' | 'reportedBy' | 'presumed'>;

/**
 * True if a report about a run replaces the known one. In rising order: running, presumed, `lost` (a guess), a reported
 * end; the task's own session counts more than another. Of equal reports, the first counts.
 */
function overrides(report: TaskOutcome, known: TaskOutcome): boolean {
  return certainty(report) > certainty(known);
}

/** True once the task's own session has reported the end. */
function isFinal({ status, reportedBy }: TaskOutcome): boolean {
  return isReportedEnd(status) && reportedBy === null;
}

/** True for a running task, and one presumed to have ended. */
export function mayBeRunning({ status, presumed }: TaskOutcome): boolean {
  return status === 'running' || presumed !== undefined;
}

/** True for a reported end. `lost` is a guess. */
export function isReportedEnd(status: Task['status']): boolean {
  return status !== 'running' && status !== 'lost';
}

function certainty({ status, reportedBy, presumed }: TaskOutcome): number {
  if (status === 'running') return 0;
  if (presumed !== undefined) return 1;
  return (isReportedEnd(status) ? 4 : 2) + (reportedBy === null ? 1 : 0);
}

const KINDS: Record<string, string | undefined> = { local_bash: 'shell', bash: 'shell', local_agent: 'subagent' };

function normaliseTaskKind(type: string): string {
  return Object.hasOwn(KINDS, type) ? (KINDS[type] ?? type) : type;
}
