import { type AgUiEvent, CUSTOM, type TaskElsewhereValue, type TaskToldValue } from '@interlude/protocol/ag-ui';
import type { EventRecord } from '@interlude/protocol/envelope';
import {
  customName,
  customValue,
  idField,
  pickId,
  pickText,
  subagentTaskId,
  taskEventId,
} from '@interlude/protocol/event-fields';
import { interludeOf } from '@interlude/protocol/interlude-metadata';
import { positionFromNumber } from '@interlude/protocol/position';
import { hasEnded } from '@interlude/protocol/projections/task-status';
import {
  TaskLedger,
  type TaskRef,
  tasksCarried,
  tasksTold,
  touchesEveryTask,
} from '@interlude/protocol/projections/tasks';
import type { Task } from '@interlude/protocol/read-models';
import { taskEndTold } from '@interlude/protocol/task-end';
import { withInterlude } from '@interlude/protocol/with-interlude';
import { columnText } from '@/db/table-rows';
import type { MentionedTask } from '@/lib/server/event-log/batch-scope';
import type { BatchSessions, SessionBatch } from './batch-sessions';
import type { RawRecord } from './parse-request';
import { rejection, type Validation } from './validate-record';

const RUN_TYPES: ReadonlySet<string> = new Set(['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR']);

/** An event and the session it is written to. */
export interface Routed {
  to: SessionBatch;
  event: AgUiEvent;
}

/**
 * Where a batch's events go: an event about a task goes to the session that started the task, whichever session reports
 * it, and the reporting session gets a line about that.
 */
export class TaskRouter {
  readonly #sessions: BatchSessions;
  readonly #isServer: boolean;
  readonly #owners = new TaskOwners();
  /** By session: its tasks as the projection will find them when this batch's events are folded. */
  readonly #tasks = new Map<string, TaskLedger>();
  /** Tells apart the runs of a task that begin with this batch: each has a position after everything stored. */
  #position: number;
  /** Which sessions were told which turn of another session has heard of their tasks. */
  readonly #told = new Set<string>();

  constructor(sessions: BatchSessions, position: number, isServer: boolean) {
    this.#sessions = sessions;
    this.#position = position;
    this.#isServer = isServer;
  }

  /** A session that is known to have started a task before this batch. */
  addHome(home: MentionedTask): void {
    this.#owners.started(home);
  }

  /** A task that was stored before this batch. Those of a session come in the order in which they began. */
  addTask(task: Task): void {
    this.#owners.started({ ...task, taskId: task.id });
    this.#ledgerOf(task).know(task);
  }

  /**
   * Who owns what an event says about a task. What the server itself writes is in the right place: a person decided so. A
   * task that no session is known to have started belongs to the reporting session if the agent has no other. A subagent
   * may speak without its task ever having been told of.
   */
  ownerOf({ agentId, sessionId }: EventRecord, mention: TaskMention): TaskOwner {
    const { id: taskId, runId, how } = mention;
    const owner = this.#isServer || how === 'starts' ? OWN : this.#provenOwner(agentId, sessionId, mention);
    const isLeft = owner.kind === 'nobody' && (how === 'speaks' || !this.#sessions.hasOthers(agentId, sessionId));
    if (owner.kind === 'other' && this.#sessions.find(owner.sessionId) === null)
      return { kind: 'several', sessionIds: [owner.sessionId] };
    if (owner.kind === 'other' && how !== 'speaks')
      this.#owners.started({ agentId, taskId, runId, sessionId: owner.sessionId });
    if (owner.kind !== 'own' && !isLeft) return owner;
    if (how !== 'speaks') this.#owners.started({ agentId, taskId, runId, sessionId });
    return OWN;
  }

  /**
   * Of a session's tasks the oldest may have been removed. It may mean one of those by an id that another session knows,
   * too: then nothing but a run says which.
   */
  #provenOwner(agentId: string, sessionId: string, task: TaskRef): TaskOwner {
    const owner = this.#owners.of(agentId, sessionId, task);
    if (owner.kind !== 'other' || owner.byRun) return owner;
    const hasForgotten = this.#sessions.find(sessionId)?.before?.summary.removed !== undefined;
    return hasForgotten ? { kind: 'several', sessionIds: [owner.sessionId, sessionId] } : owner;
  }

  /** What the event becomes, in the order in which it is written. Nothing if the owner is not known. */
  route(record: EventRecord, session: SessionBatch, mention: TaskMention | null, owner: TaskOwner): Routed[] {
    if (mention !== null && owner.kind === 'other') return this.#elsewhere(record, mention, session, owner.sessionId);
    return owner.kind === 'own' ? this.#here(record, session) : [];
  }

  /** An event of the session itself. If its run was told of another session's task, that session is told so. */
  #here(record: EventRecord, session: SessionBatch): Routed[] {
    const { agentId, sessionId, event: said } = record;
    const event = this.#isServer ? said : withoutReporters(said);
    const mention = taskMention(event);
    if (mention !== null && mention.how !== 'speaks') this.#tell({ ...record, event });
    const turnId = RUN_TYPES.has(event.type) && !this.#isServer ? idField(event, 'runId') : null;
    if (turnId === null) return [{ to: session, event }];
    const ownerOf = (task: TaskRef) => this.#provenOwner(agentId, sessionId, task);
    const routed: Routed[] = [{ to: session, event: withTaskOwners(event, ownerOf) }];
    for (const task of tasksTold(event)) {
      const owner = ownerOf(task);
      const home = owner.kind === 'other' ? this.#sessions.find(owner.sessionId) : null;
      const key = JSON.stringify([sessionId, turnId, task.id, task.runId]);
      if (home === null || this.#told.has(key) || saidWhenItOpened(session, turnId, task)) continue;
      this.#told.add(key);
      const value = { ...taskFields(task), session_id: sessionId, turn_id: turnId } satisfies TaskToldValue;
      routed.push({ to: home, event: { type: 'CUSTOM', name: CUSTOM.taskTold, value } });
    }
    return routed;
  }

  /**
   * What a session tells about another session's task goes to that session. If it is an end, the reporting session gets a
   * line; if the end is already known, that line is all.
   */
  #elsewhere(record: EventRecord, mention: TaskMention, session: SessionBatch, homeId: string): Routed[] {
    const { agentId, event } = record;
    const home = this.#sessions.find(homeId);
    if (home === null) return [];
    const routed: Routed[] = [];
    const value = customValue(event);
    const isEnd = mention.how !== 'speaks' && taskEndTold(event) !== null;
    const tasks = this.#ledgerOf({ agentId, sessionId: homeId });
    const run = isEnd ? tasks.find(mention.id, mention.runId) : undefined;
    const isMeant = mention.runId === null || run?.runId === mention.runId;
    // `lost` is only a guess, which gives way to any report
    const isKnown = run !== undefined && isMeant && hasEnded(run.status);
    // The session that told it first already has its line: agents tell an end by two events, and again when they resume.
    const again = isKnown && run.reportedBy === session.id ? ({ again: true } as const) : {};
    if (!isKnown) {
      const reported = withInterlude(withoutReporters(event), { reportedBy: session.id });
      routed.push({ to: home, event: reported });
      if (mention.how !== 'speaks') this.#tell({ ...record, sessionId: homeId, event: reported });
    }
    if (!isEnd) return routed;
    const description = tasks.find(mention.id, null)?.description ?? pickText(value, 'description');
    const status = pickText(value, 'status');
    const told = {
      ...(isKnown ? value : {}),
      ...taskFields(mention),
      session_id: homeId,
      ...(description === null ? {} : { description }),
      ...(status === null ? {} : { status }),
      ...again,
    } satisfies TaskElsewhereValue;
    routed.push({ to: session, event: { type: 'CUSTOM', name: CUSTOM.taskElsewhere, value: told } });
    return routed;
  }

  /** The tasks of a session that run, or may, at this point of the batch. */
  openOf(session: SessionBatch): Iterable<Task> {
    return this.#ledgerOf({ agentId: session.agentId, sessionId: session.id }).open();
  }

  /** A session of which nothing was heard speaks again. */
  hearAgain({ id: sessionId, agentId }: SessionBatch): void {
    for (const _ of this.#ledgerOf({ agentId, sessionId }).hearAgain());
  }

  /** Takes note of what is written to a session without a record that says so, or without naming its tasks. */
  follow({ id: sessionId, agentId }: SessionBatch, occurredAt: number, event: AgUiEvent): void {
    if (interludeOf(event).presumed === true || touchesEveryTask(event)) {
      this.#tell({ agentId, sessionId, occurredAt, event });
    }
  }

  /** Folds an event about a session's own task into its ledger. */
  #tell({ event, occurredAt, ...owner }: Pick<EventRecord, 'agentId' | 'sessionId' | 'occurredAt' | 'event'>): void {
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

/** The reason for parking a record about a task whose owner nothing proves. */
export function parkedRejection(
  raw: RawRecord,
  { id, runId }: TaskMention,
  owner: TaskOwner,
): Validation & { isValid: false } {
  const task = runId === null ? `task ${id}` : `run ${runId} of the task ${id}`;
  if (owner.kind === 'several') {
    const sessions = owner.sessionIds.slice(0, 5).join(', ');
    const message = `The ${task} may belong to several sessions of the agent (${sessions}). Assign it to one, or discard it.`;
    return rejection(raw, 'task_of_several_sessions', message);
  }
  const message = `No session of the agent is known to have started the ${task}. Assign it to one, or discard it.`;
  return rejection(raw, 'task_of_no_session', message);
}

/** Whether the owner of the task was already told, when the turn opened, that this turn is told of it. */
function saidWhenItOpened({ before }: SessionBatch, turnId: string, task: TaskRef): boolean {
  const open = before?.places.openTurn;
  if (open?.id !== turnId) return false;
  const { taskIds = [], taskRunIds, ofSessionIds } = open.trigger ?? {};
  return taskIds.some(
    (id, at) =>
      id === task.id && ofSessionIds?.[at] != null && (task.runId === null || taskRunIds?.[at] === task.runId),
  );
}

/** How an event names a run of a task. */
export function taskFields({ id, runId }: TaskRef): { task_id: string; run_id?: string } {
  return { task_id: id, ...(runId === null ? {} : { run_id: runId }) };
}

/** Only the server says who reported it and who assigned it. */
function withoutReporters(event: AgUiEvent): AgUiEvent {
  const { reportedBy, assignedBy } = interludeOf(event);
  if (reportedBy === undefined && assignedBy === undefined) return event;
  return withInterlude(event, { reportedBy: undefined, assignedBy: undefined });
}

/** What an event has to do with a task. */
export interface TaskMention extends TaskRef {
  /** `speaks`: a subagent says something; its task may never have been told of. */
  how: 'starts' | 'tells' | 'speaks';
}

/** `own`: it belongs to the session that speaks of it. `nobody`, `several`: nothing proves whose it is. */
type TaskOwner =
  | { kind: 'own' }
  /** `byRun`: that session started the run that is named. */
  | { kind: 'other'; sessionId: string; byRun: boolean }
  | { kind: 'nobody' }
  | { kind: 'several'; sessionIds: string[] };

export const OWN: TaskOwner = { kind: 'own' };

export function taskMention(event: AgUiEvent): TaskMention | null {
  const id = taskEventId(event);
  if (id !== null) {
    const runId = pickId(customValue(event), 'run_id', 'runId');
    return { id, runId, how: customName(event) === CUSTOM.taskStarted ? 'starts' : 'tells' };
  }
  const speaker = subagentTaskId(event);
  // A subagent's request is answered where it was asked: only there a runner waits for the answer.
  if (speaker === null || event.type === 'CUSTOM') return null;
  return { id: speaker, runId: interludeOf(event).taskRunId ?? null, how: 'speaks' };
}

/**
 * Which session a task belongs to: the one that started it, whichever session reports on it. Nothing is guessed: a
 * session that has started a task means its own; else the run decides, if it is named; else the only session that knows
 * the task by its id.
 */
export class TaskOwners {
  /** By agent and task: each session that started it, with the runs it started. */
  readonly #homes = new Map<string, Map<string, Set<string | null>>>();

  started({ agentId, taskId, runId, sessionId }: MentionedTask): void {
    const sessions = this.#sessions(agentId, taskId) ?? new Map<string, Set<string | null>>();
    this.#homes.set(taskKey(agentId, taskId), sessions);
    const runs = sessions.get(sessionId);
    const run = runId === null ? null : columnText(runId);
    if (runs === undefined) sessions.set(sessionId, new Set([run]));
    else runs.add(run);
  }

  of(agentId: string, sessionId: string, { id, runId }: TaskRef): TaskOwner {
    const sessions = this.#sessions(agentId, id);
    if (sessions === undefined) return { kind: 'nobody' };
    const run = runId === null ? null : columnText(runId);
    const exact = run === null ? [] : [...sessions].flatMap(([session, runs]) => (runs.has(run) ? [session] : []));
    // The run only tells apart sessions that know the task by its id.
    const may = exact.length > 0 ? exact : [...sessions.keys()];
    if (may.includes(sessionId)) return { kind: 'own' };
    if (may.length > 1) return { kind: 'several', sessionIds: may };
    return { kind: 'other', sessionId: may[0] as string, byRun: exact.length > 0 };
  }

  #sessions(agentId: string, taskId: string): Map<string, Set<string | null>> | undefined {
    return this.#homes.get(taskKey(agentId, taskId));
  }
}

/** Some ids come as they were sent, others as the database holds them: this makes them equal. */
function taskKey(agentId: string, taskId: string): string {
  return JSON.stringify([columnText(agentId), columnText(taskId)]);
}

/** Every task that an event speaks of: the sessions that know it must be read before the event is taken. */
export function mentionedTasks(event: AgUiEvent): TaskRef[] {
  const mention = taskMention(event);
  return [...(mention === null ? [] : [mention]), ...tasksTold(event), ...tasksCarried(event)];
}

/** The event with `trigger.ofSessionIds` as the server knows them, whatever its sender wrote there. */
function withTaskOwners(event: AgUiEvent, ownerOf: (task: TaskRef) => TaskOwner) {
  const { trigger } = interludeOf(event);
  if (trigger === undefined) return event;
  const { ofSessionIds: said, ...known } = trigger;
  const ofSessionIds = known.taskIds.map((id, at) => {
    const owner = ownerOf({ id, runId: known.taskRunIds?.[at] ?? null });
    return owner.kind === 'other' ? owner.sessionId : null;
  });
  const isForeign = ofSessionIds.some((id) => id !== null);
  if (!isForeign && said === undefined) return event;
  return withInterlude(event, { trigger: { ...known, ...(isForeign ? { ofSessionIds } : {}) } });
}
