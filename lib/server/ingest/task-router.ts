import type { AgUiEvent, TaskElsewhereValue, TaskToldValue } from '@interlude/protocol/ag-ui';
import type { EventRecord } from '@interlude/protocol/envelope';
import {
  CUSTOM,
  customName,
  customValue,
  idField,
  pickId,
  pickText,
  subagentTaskId,
  taskEndOf,
  taskEventId,
} from '@interlude/protocol/event-fields';
import { readInterlude, withInterlude } from '@interlude/protocol/interlude-metadata';
import { positionFromNumber } from '@interlude/protocol/position';
import {
  affectsEveryTask,
  deliveredTasks,
  isReportedEnd,
  reportedTasks,
  TaskLedger,
  type TaskRef,
} from '@interlude/protocol/projections/tasks';
import type { Task } from '@interlude/protocol/read-models';
import { columnText } from '@/db/table-rows';
import type { MentionedTask } from '@/lib/server/event-log/batch-scope';
import type { BatchSessions, SessionBatch } from './batch-sessions';
import type { RawRecord } from './parse-request';
import { rejection, type Validation } from './validate-record';

const RUN_TYPES: ReadonlySet<string> = new Set(['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR']);

interface Routed {
  to: SessionBatch;
  event: AgUiEvent;
}

/**
 * Routes a batch's events. An event about a task goes to the session that started the task, regardless of which session
 * reports it, and the reporting session gets a line about it. Never guesses: an event whose owner is unproven is
 * parked.
 */
export class TaskRouter {
  readonly #sessions: BatchSessions;
  readonly #isServer: boolean;
  readonly #owners = new TaskOwners();
  /** Each session's tasks, as the projection will find them after this batch. */
  readonly #tasks = new Map<string, TaskLedger>();
  /** Provisional positions, after everything stored, that distinguish runs started in this batch. */
  #position: number;
  /** Turns already reported to other sessions, by session, turn and task. */
  readonly #informed = new Set<string>();

  constructor(sessions: BatchSessions, position: number, isServer: boolean) {
    this.#sessions = sessions;
    this.#position = position;
    this.#isServer = isServer;
  }

  /** Adds a session that started a task before this batch. */
  addTaskSession(task: MentionedTask): void {
    this.#owners.started(task);
  }

  /** Adds a task stored before this batch. A session's tasks come in the order they started. */
  addTask(task: Task): void {
    this.#owners.started({ ...task, taskId: task.id });
    this.#ledgerOf(task).load(task);
  }

  /**
   * Finds the session that owns the task of an event. The server's own events are already in the right session, because
   * a person chose it. A task that no session started belongs to the reporting session if the agent has no other. A
   * subagent may send events before its task is reported.
   */
  ownerOf({ agentId, sessionId }: EventRecord, mention: TaskMention): TaskOwner {
    const { id: taskId, runId, how } = mention;
    const owner = this.#isServer || how === 'starts' ? OWN : this.#provenOwner(agentId, sessionId, mention);
    const isLeft = owner.kind === 'unknown' && (how === 'emits' || !this.#sessions.hasOthers(agentId, sessionId));
    if (owner.kind === 'other' && this.#sessions.find(owner.sessionId) === null)
      return { kind: 'ambiguous', sessionIds: [owner.sessionId] };
    if (owner.kind === 'other' && how !== 'emits')
      this.#owners.started({ agentId, taskId, runId, sessionId: owner.sessionId });
    if (owner.kind !== 'own' && !isLeft) return owner;
    if (how !== 'emits') this.#owners.started({ agentId, taskId, runId, sessionId });
    return OWN;
  }

  /**
   * A session whose oldest tasks were removed may refer to a removed one by an id that another session also knows. Then
   * only a run id proves the owner.
   */
  #provenOwner(agentId: string, sessionId: string, task: TaskRef): TaskOwner {
    const owner = this.#owners.of(agentId, sessionId, task);
    if (owner.kind !== 'other' || owner.byRun) return owner;
    const hasRemovedTasks = this.#sessions.find(sessionId)?.before?.summary.removed !== undefined;
    return hasRemovedTasks ? { kind: 'ambiguous', sessionIds: [owner.sessionId, sessionId] } : owner;
  }

  /** Returns the events to write, in order; none if the owner is unproven. */
  route(record: EventRecord, session: SessionBatch, mention: TaskMention | null, owner: TaskOwner): Routed[] {
    if (mention !== null && owner.kind === 'other') return this.#elsewhere(record, mention, session, owner.sessionId);
    return owner.kind === 'own' ? this.#routeOwn(record, session) : [];
  }

  /** Handles an event of the session itself. If it starts a run for another session's task, informs that session. */
  #routeOwn(record: EventRecord, session: SessionBatch): Routed[] {
    const { agentId, sessionId } = record;
    const event = this.#isServer ? record.event : withoutReporters(record.event);
    const mention = taskMention(event);
    if (mention !== null && mention.how !== 'emits') this.#fold({ ...record, event });
    const turnId = RUN_TYPES.has(event.type) && !this.#isServer ? idField(event, 'runId') : null;
    if (turnId === null) return [{ to: session, event }];
    const ownerOf = (task: TaskRef) => this.#provenOwner(agentId, sessionId, task);
    const routed: Routed[] = [{ to: session, event: withTaskOwners(event, ownerOf) }];
    for (const task of reportedTasks(event)) {
      const owner = ownerOf(task);
      const ownerSession = owner.kind === 'other' ? this.#sessions.find(owner.sessionId) : null;
      const key = JSON.stringify([sessionId, turnId, task.id, task.runId]);
      if (ownerSession === null || this.#informed.has(key) || isInOpenTrigger(session, turnId, task)) continue;
      this.#informed.add(key);
      const value = { ...taskFields(task), session_id: sessionId, turn_id: turnId } satisfies TaskToldValue;
      routed.push({ to: ownerSession, event: { type: 'CUSTOM', name: CUSTOM.taskTold, value } });
    }
    return routed;
  }

  /**
   * Routes an event about another session's task to that session. If the event reports an end, the reporting session
   * gets a line; if the end is already known, only that line is written.
   */
  #elsewhere(record: EventRecord, mention: TaskMention, session: SessionBatch, ownerId: string): Routed[] {
    const { agentId, event } = record;
    const ownerSession = this.#sessions.find(ownerId);
    if (ownerSession === null) return [];
    const routed: Routed[] = [];
    const value = customValue(event);
    const isEnd = mention.how !== 'emits' && taskEndOf(event) !== null;
    const tasks = this.#ledgerOf({ agentId, sessionId: ownerId });
    const run = isEnd ? tasks.find(mention.id, mention.runId) : undefined;
    const isSameRun = mention.runId === null || run?.runId === mention.runId;
    // `lost` is only presumed, so any report overrides it.
    const isKnown = run !== undefined && isSameRun && isReportedEnd(run.status);
    // The first reporter already has its line. Agents report an end in two events, and again when they resume.
    const again = isKnown && run.reportedBy === session.id ? ({ again: true } as const) : {};
    if (!isKnown) {
      const reported = withInterlude(withoutReporters(event), { reportedBy: session.id });
      routed.push({ to: ownerSession, event: reported });
      if (mention.how !== 'emits') this.#fold({ ...record, sessionId: ownerId, event: reported });
    }
    if (!isEnd) return routed;
    const description = tasks.find(mention.id, null)?.description ?? pickText(value, 'description');
    const status = pickText(value, 'status');
    const line = {
      ...(isKnown ? value : {}),
      ...taskFields(mention),
      session_id: ownerId,
      ...(description === null ? {} : { description }),
      ...(status === null ? {} : { status }),
      ...again,
    } satisfies TaskElsewhereValue;
    routed.push({ to: session, event: { type: 'CUSTOM', name: CUSTOM.taskElsewhere, value: line } });
    return routed;
  }

  /** The session's tasks that run or may run at this point of the batch. */
  openOf(session: SessionBatch): Iterable<Task> {
    return this.#ledgerOf({ agentId: session.agentId, sessionId: session.id }).open();
  }

  /** Call when a silent session sends records again. */
  resumeTasks({ id: sessionId, agentId }: SessionBatch): void {
    for (const _ of this.#ledgerOf({ agentId, sessionId }).revertUnheard());
  }

  /** Applies events that the server derived, and events about all of a session's tasks. */
  follow({ id: sessionId, agentId }: SessionBatch, occurredAt: number, event: AgUiEvent): void {
    if (readInterlude(event).presumed === true || affectsEveryTask(event)) {
      this.#fold({ agentId, sessionId, occurredAt, event });
    }
  }

  #fold({ event, occurredAt, ...owner }: Pick<EventRecord, 'agentId' | 'sessionId' | 'occurredAt' | 'event'>): void {
    this.#position += 1;
    const entry = { position: positionFromNumber(this.#position), occurredAt, receivedAt: occurredAt, event };
    for (const _ of this.#ledgerOf(owner).apply({ entry, turnId: null, turns: [] }));
  }

  #ledgerOf({ agentId, sessionId }: { agentId: string; sessionId: string }): TaskLedger {
    const known = this.#tasks.get(sessionId) ?? new TaskLedger({ sessionId, agentId });
    this.#tasks.set(sessionId, known);
    return known;
  }
}

/** Rejects a record about a task whose owner is unproven. */
export function parkedRejection(
  raw: RawRecord,
  { id, runId }: TaskMention,
  owner: TaskOwner,
): Validation & { isValid: false } {
  const task = runId === null ? `task ${id}` : `run ${runId} of the task ${id}`;
  if (owner.kind === 'ambiguous') {
    const sessions = owner.sessionIds.slice(0, 5).join(', ');
    const message = `The ${task} may belong to several sessions of the agent (${sessions}). Assign it to one, or discard it.`;
    return rejection(raw, 'task_of_several_sessions', message);
  }
  const message = `No session of the agent is known to have started the ${task}. Assign it to one, or discard it.`;
  return rejection(raw, 'task_of_no_session', message);
}

/** The open turn's trigger already names the task's owner, which was informed when the turn opened. */
function isInOpenTrigger({ before }: SessionBatch, turnId: string, task: TaskRef): boolean {
  const open = before?.places.openTurn;
  if (open?.id !== turnId) return false;
  const { taskIds = [], taskRunIds, ofSessionIds } = open.trigger ?? {};
  return taskIds.some(
    (id, index) =>
      id === task.id && ofSessionIds?.[index] != null && (task.runId === null || taskRunIds?.[index] === task.runId),
  );
}

export function taskFields({ id, runId }: TaskRef): { task_id: string; run_id?: string } {
  return { task_id: id, ...(runId === null ? {} : { run_id: runId }) };
}

/** Only the server sets these fields. */
function withoutReporters(event: AgUiEvent): AgUiEvent {
  const { reportedBy, assignedBy } = readInterlude(event);
  if (reportedBy === undefined && assignedBy === undefined) return event;
  return withInterlude(event, { reportedBy: undefined, assignedBy: undefined });
}

/** An event's reference to a task. */
export interface TaskMention extends TaskRef {
  /** `emits`: a subagent's own event, whose task may never have been reported. */
  how: 'starts' | 'reports' | 'emits';
}

/** `own`: the reporting session. `unknown`, `ambiguous`: the owner is unproven. */
type TaskOwner =
  | { kind: 'own' }
  /** `byRun`: proven by the run id. */
  | { kind: 'other'; sessionId: string; byRun: boolean }
  | { kind: 'unknown' }
  | { kind: 'ambiguous'; sessionIds: string[] };

export const OWN: TaskOwner = { kind: 'own' };

export function taskMention(event: AgUiEvent): TaskMention | null {
  const id = taskEventId(event);
  if (id !== null) {
    const runId = pickId(customValue(event), 'run_id', 'runId');
    return { id, runId, how: customName(event) === CUSTOM.taskStarted ? 'starts' : 'reports' };
  }
  const speaker = subagentTaskId(event);
  // A subagent's request stays in the session that sent it, because only its runner waits for the answer.
  if (speaker === null || event.type === 'CUSTOM') return null;
  return { id: speaker, runId: readInterlude(event).taskRunId ?? null, how: 'emits' };
}

/**
 * Finds the session that started a task: the reporting session if it started such a task itself; else the one that
 * started the named run; else the only session that knows the task by its id.
 */
export class TaskOwners {
  /** The sessions that started a task, by agent and task, each with its run ids. */
  readonly #sessionsByTask = new Map<string, Map<string, Set<string | null>>>();

  started({ agentId, taskId, runId, sessionId }: MentionedTask): void {
    const sessions = this.#sessions(agentId, taskId) ?? new Map<string, Set<string | null>>();
    this.#sessionsByTask.set(taskKey(agentId, taskId), sessions);
    const runs = sessions.get(sessionId);
    const run = runId === null ? null : columnText(runId);
    if (runs === undefined) sessions.set(sessionId, new Set([run]));
    else runs.add(run);
  }

  of(agentId: string, sessionId: string, { id, runId }: TaskRef): TaskOwner {
    const sessions = this.#sessions(agentId, id);
    if (sessions === undefined) return { kind: 'unknown' };
    const run = runId === null ? null : columnText(runId);
    const exact = run === null ? [] : [...sessions].flatMap(([session, runs]) => (runs.has(run) ? [session] : []));
    // The run id only distinguishes sessions that know the task by its id.
    const candidates = exact.length > 0 ? exact : [...sessions.keys()];
    if (candidates.includes(sessionId)) return { kind: 'own' };
    if (candidates.length > 1) return { kind: 'ambiguous', sessionIds: candidates };
    return { kind: 'other', sessionId: candidates[0] as string, byRun: exact.length > 0 };
  }

  #sessions(agentId: string, taskId: string): Map<string, Set<string | null>> | undefined {
    return this.#sessionsByTask.get(taskKey(agentId, taskId));
  }
}

/** The same key for an id as sent and as the database stores it. */
function taskKey(agentId: string, taskId: string): string {
  return JSON.stringify([columnText(agentId), columnText(taskId)]);
}

/** All tasks that an event mentions. The sessions that know these tasks are read before the event is routed. */
export function mentionedTasks(event: AgUiEvent): TaskRef[] {
  const mention = taskMention(event);
  return [...(mention === null ? [] : [mention]), ...reportedTasks(event), ...deliveredTasks(event)];
}

/** Replaces `trigger.ofSessionIds` with the owners that the server knows. */
function withTaskOwners(event: AgUiEvent, ownerOf: (task: TaskRef) => TaskOwner) {
  const { trigger } = readInterlude(event);
  if (trigger === undefined) return event;
  const { ofSessionIds: sent, ...known } = trigger;
  const ofSessionIds = known.taskIds.map((id, index) => {
    const owner = ownerOf({ id, runId: known.taskRunIds?.[index] ?? null });
    return owner.kind === 'other' ? owner.sessionId : null;
  });
  const isForeign = ofSessionIds.some((id) => id !== null);
  if (!isForeign && sent === undefined) return event;
  return withInterlude(event, { trigger: { ...known, ...(isForeign ? { ofSessionIds } : {}) } });
}
