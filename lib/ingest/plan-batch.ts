import { Pace } from '@/db/next-turn';
import type { BatchRows, EventRow, InsightRow, QuarantineRow, SessionChange } from '@/lib/event-log/batch-rows';
import type { BatchState } from '@/lib/event-log/read-batch-state';
import { customName, customValue, pickNumber, pickText, textField } from '@/lib/projections/event-fields';
import { heardLevel } from '@/lib/projections/log-level';
import { isUnderWay, owedDifference, type SessionFold } from '@/lib/projections/session-summary';
import { normaliseTaskEnd } from '@/lib/projections/task-status';
import { type AgUiEvent, CUSTOM, type TaskElsewhereValue, type TaskToldValue } from '@/lib/protocol/ag-ui';
import {
  type EventRecord,
  type IngestAnswer,
  type IngestRecord,
  type LogRecord,
  type LostRecord,
  type ProducerRef,
  SERVER_PRODUCER_ID,
  type StatusRecord,
  timeSchema,
} from '@/lib/protocol/envelope';
import { CLOCK_SKEW_MS, MAX_FANNED_OUT } from '@/lib/protocol/limits';
import { positionFromNumber } from '@/lib/protocol/position';
import type { ProducerSummary } from '@/lib/protocol/read-models';
import { AgentLedger } from './agent-ledger';
import { insightRow } from './insight-row';
import { type Judgement, rejection } from './judge-record';
import { LogTally } from './log-tally';
import type { RawRecord } from './parse-request';
import { foldOf, projectSession, type SessionBatch, type SessionProjection } from './project-session';
import type { Opening } from './stamp-requests';
import {
  type TaskHome,
  type TaskMention,
  type TaskOwner,
  TaskOwners,
  taskMention,
  tasksTold,
  withInterlude,
  withOwners,
} from './task-owners';

import { TaskRuns } from './task-runs';

const SEEN_MS = 1_000;
const OWN: TaskOwner = { kind: 'own' };
/** Most places in which a batch says what was lost in no session by name; beyond it only the agent counts it. */
const MAX_LOSSES_SAID = 10_000;

const RUN_TYPES: ReadonlySet<string> = new Set(['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR']);

export interface JudgedRecord {
  raw: RawRecord;
  judgement: Judgement;
}

export interface BatchPlan {
  rows: BatchRows;
  rejected: IngestAnswer['rejected'];
  openings: Opening[];
}

/**
 * Decides everything a batch changes, from what is stored and without touching it. However much that is, others get
 * their turns meanwhile.
 *
 * Ordering: rows take positions in `seq` order; then every changed task, session and agent takes one of its own.
 * Failure: whatever a record says, it becomes an event, a log line, a change of state or a quarantine row.
 *
 * @param records the batch's new records in `seq` order
 * @param producer the producer's row with its new epoch and last seq, its other counters still to be raised
 */
export async function planBatch(
  state: BatchState,
  source: ProducerRef,
  producer: ProducerSummary,
  records: readonly JudgedRecord[],
  receivedAt: number,
): Promise<BatchPlan> {
  const pace = new Pace();
  const draft = new BatchDraft(state, producer, receivedAt);
  await pace.each(state.taskHomes, (home) => draft.knowHome(home));
  await pace.each(records, ({ raw, judgement }) => {
    if (judgement.taken) draft.take(judgement.record, raw);
    else draft.quarantine(raw, judgement);
  });
  return {
    rows: { source, receivedAt, ...(await draft.finish(pace)) },
    rejected: draft.rejected,
    openings: draft.openings,
  };
}

class BatchDraft {
  readonly rejected: IngestAnswer['rejected'] = [];
  readonly openings: Opening[] = [];
  readonly #state: BatchState;
  readonly #producer: ProducerSummary;
  readonly #receivedAt: number;
  readonly #sessions = new Map<string, SessionBatch>();
  readonly #agents: AgentLedger;
  readonly #isServer: boolean;
  readonly #owners = new TaskOwners();
  /** By agent: sessions that begin with this batch. */
  readonly #newSessions = new Map<string, Set<string>>();
  readonly #runs: TaskRuns;
  /** What other sessions were told of which turn has heard of their tasks. */
  readonly #told = new Set<string>();
  /** By agent: failures that name no session. */
  readonly #failedAround = new Map<string, number>();
  /** What was last declared lost in no session by name, where it is said, and of how many sessions anybody knew. */
  #loss: { agentId: string; knownSessions: number; said: { count: number; reason: string }[] } | null = null;
  #lossesSaid = 0;
  readonly #events: EventRow[] = [];
  readonly #logs: LogTally;
  readonly #insights: InsightRow[] = [];
  readonly #quarantine: QuarantineRow[] = [];
  #position: number;

  constructor(state: BatchState, producer: ProducerSummary, receivedAt: number) {
    this.#state = state;
    this.#producer = { ...producer, lastSeenAt: receivedAt };
    this.#receivedAt = receivedAt;
    this.#isServer = producer.id === SERVER_PRODUCER_ID;
    this.#agents = new AgentLedger(state.agents, receivedAt, !this.#isServer);
    this.#logs = new LogTally(state.logs);
    this.#position = state.position;
    this.#runs = new TaskRuns(state.tasks);
  }

  /** A session that is known to have started a task, from before this batch. */
  knowHome(home: TaskHome): void {
    this.#owners.started(home);
  }

  take(record: IngestRecord, raw: RawRecord): void {
    const sessionId = record.kind === 'log' ? undefined : record.sessionId;
    const refusal = this.#refusal(record, sessionId, raw);
    if (refusal !== null) {
      this.quarantine(raw, refusal);
      return;
    }
    const mention = record.kind === 'event' ? taskMention(record.event) : null;
    const owner = record.kind === 'event' && mention !== null ? this.#ownerOf(record, mention) : OWN;
    const isRepeated = record.kind === 'status' && this.#agents.hasSaid(record.agentId, record.status);
    if (!isRepeated) this.#agents.hear(record.agentId);
    this.#seeClock(record.occurredAt);
    const session = sessionId === undefined ? null : this.#claim(sessionId, record.agentId, record.occurredAt);
    if (session !== null && !this.#isServer && !(isRepeated && isAtRest(session))) session.isHeard = true;
    if (mention !== null && (owner.kind === 'nobody' || owner.kind === 'several')) {
      this.quarantine(raw, whyParked(raw, mention, owner), mention);
      return;
    }
    this.#producer.accepted += 1;
    if (!this.#isServer) this.#producer.agentId = record.agentId;
    switch (record.kind) {
      case 'event':
        if (session === null) return;
        if (mention !== null && owner.kind === 'other') this.#takeElsewhere(record, mention, session, owner.sessionId);
        else this.#takeEvent(record, session);
        return;
      case 'log':
        this.#logs.add(this.#next(), record);
        this.#mark(record);
        return;
      case 'status':
        this.#observe(record);
        return;
      case 'lost':
        this.#declare(record, session);
    }
  }

  /** Whether the session is another agent's: it belongs to the agent that first wrote to it. */
  #refusal(record: IngestRecord, sessionId: string | undefined, raw: RawRecord): (Judgement & { taken: false }) | null {
    const session = sessionId === undefined ? null : this.#session(sessionId);
    if (session !== null && session.agentId !== record.agentId) {
      const message = `The session belongs to the agent ${session.agentId}, which wrote to it first.`;
      return rejection(raw, 'session_of_another_agent', message);
    }
    return null;
  }

  /**
   * Whose what is told of a task is. What the server itself writes is where it belongs: a person has said so. What nobody
   * is known to have started is the only session's there is; a subagent may speak without ever having been told of.
   */
  #ownerOf({ agentId, sessionId }: EventRecord, mention: TaskMention): TaskOwner {
    const { id: taskId, runId, how } = mention;
    const owner = this.#isServer || how === 'starts' ? OWN : this.#owners.of(agentId, sessionId, mention);
    const isLeft = owner.kind === 'nobody' && (how === 'speaks' || !this.#hasOtherSessions(agentId, sessionId));
    if (owner.kind === 'other' && this.#session(owner.sessionId) === null)
      return { kind: 'several', sessionIds: [owner.sessionId] };
    if (owner.kind === 'other' && how !== 'speaks')
      this.#owners.started({ agentId, taskId, runId, sessionId: owner.sessionId });
    if (owner.kind !== 'own' && !isLeft) return owner;
    if (how !== 'speaks') this.#owners.started({ agentId, taskId, runId, sessionId });
    return OWN;
  }

  #hasOtherSessions(agentId: string, sessionId: string): boolean {
    const stored = this.#state.agents.get(agentId)?.sessionCount ?? 0;
    const fresh = this.#newSessions.get(agentId);
    const own = Number(this.#state.sessions.has(sessionId)) + Number(fresh?.has(sessionId) === true);
    return stored + (fresh?.size ?? 0) > own;
  }

  /** An event of the session itself. Of a task of another session that its run was told of, that session hears. */
  #takeEvent({ agentId, sessionId, seq, occurredAt, event }: EventRecord, session: SessionBatch): void {
    this.#settleParked(agentId, event);
    const mention = taskMention(event);
    if (mention !== null && mention.how !== 'speaks') this.#runs.tell(sessionId, mention, endsTask(event));
    const turnId = RUN_TYPES.has(event.type) && !this.#isServer ? textField(event, 'runId') : null;
    if (turnId === null) {
      this.#append(session, seq, occurredAt, event);
      return;
    }
    const ownerOf = (task: { id: string; runId: string | null }) => this.#owners.of(agentId, sessionId, task);
    this.#append(session, seq, occurredAt, withOwners(event, ownerOf));
    for (const task of tasksTold(event)) {
      const owner = ownerOf(task);
      const home = owner.kind === 'other' ? this.#session(owner.sessionId) : null;
      const key = JSON.stringify([sessionId, turnId, task.id, task.runId]);
      if (home === null || this.#told.has(key) || saidWhenItOpened(session, turnId, task)) continue;
      this.#told.add(key);
      const value = { ...aboutTask(task), session_id: sessionId, turn_id: turnId } satisfies TaskToldValue;
      this.#append(home, seq, occurredAt, { type: 'CUSTOM', name: CUSTOM.taskTold, value });
    }
  }

  /**
   * What a session tells of another session's task: it goes there. Of an end the one that told it has a line; an end
   * that is known already is only that line.
   */
  #takeElsewhere(record: EventRecord, mention: TaskMention, session: SessionBatch, homeId: string): void {
    const { seq, occurredAt, event } = record;
    const home = this.#session(homeId);
    if (home === null) return;
    const value = customValue(event);
    const isEnd = customName(event) === CUSTOM.taskCompleted;
    const isKnown = isEnd && this.#runs.hasEnded(homeId, mention);
    if (!isKnown) {
      this.#append(home, seq, occurredAt, withInterlude(event, { reportedBy: session.id }));
      if (mention.how !== 'speaks') this.#runs.tell(homeId, mention, endsTask(event));
    }
    if (!isEnd) return;
    const description = this.#runs.description(homeId, mention.id) ?? pickText(value, 'description');
    const status = pickText(value, 'status');
    const told = {
      ...(isKnown ? value : {}),
      ...aboutTask(mention),
      session_id: homeId,
      ...(description === null ? {} : { description }),
      ...(status === null ? {} : { status }),
    } satisfies TaskElsewhereValue;
    this.#append(session, seq, occurredAt, { type: 'CUSTOM', name: CUSTOM.taskElsewhere, value: told });
  }

  /** A person has said what becomes of parked records: the agent has fewer. */
  #settleParked(agentId: string, event: AgUiEvent): void {
    const name = customName(event);
    if (!this.#isServer || (name !== CUSTOM.parkedAssigned && name !== CUSTOM.parkedDiscarded)) return;
    const agent = this.#agents.see(agentId);
    agent.parkedCount = Math.max(0, agent.parkedCount - (pickNumber(customValue(event), 'count') ?? 0));
  }

  /** @param task parks the record: it is about this task, and nothing proves whose that is */
  quarantine(
    raw: RawRecord,
    { code, message, agentId, sessionId }: Judgement & { taken: false },
    task: TaskMention | null = null,
  ): void {
    const { seq } = raw;
    const known = agentId ?? this.#producer.agentId;
    this.#producer.rejected += 1;
    this.rejected.push({ seq, code, message });
    const parked = task === null ? null : { id: task.id, runId: task.runId };
    this.#quarantine.push({
      position: this.#next(),
      seq,
      agentId: known,
      sessionId,
      code,
      message,
      record: raw,
      task: parked,
    });
    if (known !== null) {
      const agent = this.#agents.see(known);
      agent.quarantinedCount += 1;
      if (parked !== null) agent.parkedCount += 1;
    }
    const session = sessionId === null ? null : this.#session(sessionId);
    if (session !== null && session.agentId === known) {
      const at = timeSchema.catch(this.#receivedAt).parse(raw.occurredAt);
      this.#append(session, seq, at, { type: 'CUSTOM', name: CUSTOM.quarantined, value: { seq, code, message } });
    }
  }

  async finish(pace: Pace): Promise<Omit<BatchRows, 'source' | 'receivedAt'>> {
    this.#countInsights();
    const projections: (SessionProjection & { session: SessionBatch })[] = [];
    for (const session of this.#sessions.values()) {
      const { before, entries, insights } = session;
      if (before !== null && entries.length === 0 && insights === 0 && !this.#isNews(session)) continue;
      const tasks = this.#state.tasks.get(session.id) ?? [];
      const owed = this.#state.obligations.get(session.id) ?? [];
      const stored = { tasks, obligations: owed, position: this.#state.position };
      projections.push({ session, ...(await projectSession(session, stored, this.#receivedAt, pace)) });
    }
    const foldedAway = new Set(projections.flatMap((projection) => [...projection.foldedAway]));
    await pace.rest();
    for (const { openings } of projections) this.openings.push(...openings);
    const obligations = projections.flatMap((projection) => {
      const { session, obligations: changes } = projection;
      if (changes.length > 0) this.#agents.see(session.agentId).owedCount += owedDifference(changes);
      return changes.map(({ after }) => ({ obligation: after, updatedPosition: this.#next() }));
    });
    await pace.rest();
    const tasks = projections.flatMap((projection) =>
      projection.tasks.map((task) => ({ task, updatedPosition: this.#next() })),
    );
    await pace.rest();
    const sessions = await pace.map(projections, ({ session, change, announces }): SessionChange => {
      const updatedPosition = announces
        ? positionFromNumber(this.#next())
        : (session.before?.summary.updatedPosition ?? '0');
      if (session.before === null) this.#agents.see(session.agentId).sessionCount += 1;
      return { ...change, summary: { ...change.summary, updatedPosition } };
    });
    await pace.rest();
    const agents = this.#agents.changed(() => this.#next());
    await pace.rest();
    const stillThereAgentIds = this.#agents.stillThere();
    const tag = <T>(pick: (projection: (typeof projections)[number]) => T[]) =>
      projections.flatMap((projection) =>
        pick(projection).map((value) => ({ sessionId: projection.session.id, value })),
      );
    return {
      position: this.#position,
      producer: this.#producer,
      events: this.#events.filter((row) => !foldedAway.has(row)),
      folds: projections.flatMap((projection) => projection.folds),
      logLines: this.#logs.lines,
      agentLogs: this.#logs.changed(),
      insights: this.#insights,
      logComponents: this.#logs.components(),
      quarantine: this.#quarantine,
      turns: tag((projection) => projection.turns).map(({ sessionId, value }) => ({ sessionId, header: value })),
      removedTurns: tag((projection) => projection.removedTurnIds).map(({ sessionId, value }) => ({
        sessionId,
        turnId: value,
      })),
      moves: projections.flatMap((projection) => projection.moves),
      tasks,
      sessions,
      agents,
      stillThereAgentIds,
      obligations,
      seenMessages: projections
        .filter(({ seenMessageIds }) => seenMessageIds.length > 0)
        .map(({ session, seenMessageIds }) => ({
          sessionId: session.id,
          messageIds: seenMessageIds,
          updatedPosition: this.#position,
        })),
      stirredAgentIds: [
        ...new Set(projections.filter(({ isStirred }) => isStirred).map(({ session }) => session.agentId)),
      ],
      writtenSessionIds: projections
        .filter(({ session }) => session.entries.length > 0)
        .map(({ session }) => session.id),
    };
  }

  /** That its runner is there is noted about once a second, and at once after it was missed. */
  #isNews({ isHeard, before }: SessionBatch): boolean {
    const fold = before?.memory.fold as Partial<SessionFold> | undefined;
    return isHeard && (fold?.away != null || Math.abs(this.#receivedAt - (fold?.seenAt ?? 0)) >= SEEN_MS);
  }

  #next(): number {
    this.#position += 1;
    return this.#position;
  }

  #append(session: SessionBatch, seq: number, occurredAt: number, event: AgUiEvent): void {
    const position = this.#next();
    const row = {
      position,
      sessionId: session.id,
      agentId: session.agentId,
      seq,
      occurredAt,
      entityId: null,
      turnId: null,
      event,
    };
    this.#events.push(row);
    const entry = { position: positionFromNumber(position), occurredAt, receivedAt: this.#receivedAt, event };
    session.entries.push({ entry, row });
  }

  /** The session, if anybody has written to it, before or in this batch. */
  #session(id: string): SessionBatch | null {
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    const before = this.#state.sessions.get(id);
    if (before === undefined) return null;
    return this.#remember({
      id,
      agentId: before.summary.agentId,
      before,
      startedAt: before.summary.startedAt,
      entries: [],
      insights: 0,
      isHeard: false,
    });
  }

  /** The session, which belongs to `agentId` from now on if it belonged to nobody. */
  #claim(id: string, agentId: string, at: number): SessionBatch {
    // what failed before it began did not fail around it
    const insights = -(this.#failedAround.get(agentId) ?? 0);
    const fresh = { id, agentId, before: null, startedAt: at, entries: [], insights, isHeard: false };
    return this.#session(id) ?? this.#remember(fresh);
  }

  #remember(session: SessionBatch): SessionBatch {
    this.#sessions.set(session.id, session);
    if (session.before === null) {
      const fresh = this.#newSessions.get(session.agentId) ?? new Set();
      this.#newSessions.set(session.agentId, fresh.add(session.id));
    }
    return session;
  }

  /**
   * Where a loss without a session may have been: everywhere this outbox has written for the agent. One that has written
   * nowhere speaks for another, which could not be read any more: then wherever the agent is not done.
   */
  #sessionsOf(agentId: string): SessionBatch[] {
    const ids = new Set([...this.#state.producerSessionIds, ...this.#sessions.keys()]);
    const own = [...ids]
      .map((id) => this.#session(id))
      .filter((session): session is SessionBatch => session?.agentId === agentId);
    return own.length > 0 ? own : this.#openSessionsOf(agentId);
  }

  /**
   * What failed is marked on the session it says, if that is the agent's own; what says none may concern each of its
   * sessions that is not done.
   */
  #mark(record: LogRecord): void {
    const { agentId, log } = record;
    const { insight } = log;
    const named = insight?.sessionId === undefined ? null : this.#session(insight.sessionId);
    const own = named?.agentId === agentId ? named : null;
    const row = insightRow(this.#position, record, own?.id ?? null);
    if (row === null) return;
    this.#insights.push(row);
    this.#agents.see(agentId).insightCount += 1;
    if (own !== null) own.insights += 1;
    else if (insight?.sessionId === undefined) {
      this.#failedAround.set(agentId, (this.#failedAround.get(agentId) ?? 0) + 1);
    }
  }

  /** What failed around an agent, in no session that is named: counted once, in each of its sessions at the end. */
  #countInsights(): void {
    for (const [agentId, count] of this.#failedAround) {
      for (const session of this.#openSessionsOf(agentId)) session.insights += count;
    }
  }

  #openSessionsOf(agentId: string): SessionBatch[] {
    const ids = new Set([...this.#state.sessions.keys(), ...this.#sessions.keys()]);
    return [...ids]
      .map((id) => this.#session(id))
      .filter((one): one is SessionBatch => one?.agentId === agentId && one.before?.summary.state !== 'done');
  }

  #observe({ agentId, occurredAt, status }: StatusRecord): void {
    const agent = this.#agents.see(agentId);
    if (!this.#agents.hasSaid(agentId, status)) agent.status = status;
    agent.statusAt = occurredAt;
    if (typeof status.kind === 'string') agent.kind = status.kind;
    agent.logLevel = heardLevel(agent.logLevel, status, this.#receivedAt);
  }

  #declare({ agentId, seq, occurredAt, lost }: LostRecord, session: SessionBatch | null): void {
    this.#producer.lost = sum(this.#producer.lost, lost.count);
    const agent = this.#agents.see(agentId);
    agent.lostCount = sum(agent.lostCount, lost.count);
    const value = () => ({ count: lost.count, reason: lost.reason });
    const say = (where: SessionBatch, said = value()) => {
      this.#append(where, seq, occurredAt, { type: 'CUSTOM', name: CUSTOM.lost, value: said });
      return said;
    };
    if (session !== null) {
      say(session);
      return;
    }
    // Where one has just been said everywhere, what follows is said with it.
    const knownSessions = this.#sessions.size;
    if (this.#loss?.agentId === agentId && this.#loss.knownSessions === knownSessions) {
      for (const said of this.#loss.said) {
        said.count = sum(said.count, lost.count);
        if (said.reason !== lost.reason) said.reason = 'several reasons';
      }
      return;
    }
    const sessions = this.#sessionsOf(agentId).slice(-MAX_FANNED_OUT);
    if (this.#lossesSaid + sessions.length > MAX_LOSSES_SAID) return;
    this.#lossesSaid += sessions.length;
    this.#loss = { agentId, knownSessions: this.#sessions.size, said: sessions.map((one) => say(one)) };
  }

  #seeClock(occurredAt: number): void {
    const skewMs = occurredAt - this.#receivedAt;
    if (Math.abs(skewMs) > CLOCK_SKEW_MS) this.#producer.clockSkewMs = skewMs;
  }
}

/**
 * Whether nothing goes on in a session that its runner could be missed for: that the runner is still there makes no
 * difference to it.
 */
function isAtRest(session: SessionBatch): boolean {
  if (session.before === null) return false;
  const fold = foldOf(session);
  return fold.away === null && !isUnderWay(fold);
}

function whyParked(raw: RawRecord, { id, runId }: TaskMention, owner: TaskOwner): Judgement & { taken: false } {
  const task = runId === null ? `task ${id}` : `run ${runId} of the task ${id}`;
  if (owner.kind === 'several') {
    const sessions = owner.sessionIds.slice(0, 5).join(', ');
    const message = `The ${task} was started by several other sessions of the agent (${sessions}). Assign it to one, or discard it.`;
    return rejection(raw, 'task_of_several_sessions', message);
  }
  const message = `No session of the agent is known to have started the ${task}. Assign it to one, or discard it.`;
  return rejection(raw, 'task_of_no_session', message);
}

/** The owner of the task was told when the turn began that it is told of it. */
function saidWhenItOpened(
  { before }: SessionBatch,
  turnId: string,
  task: { id: string; runId: string | null },
): boolean {
  const open = before?.places.openTurn;
  if (open?.id !== turnId) return false;
  const { taskIds = [], taskRunIds, ofSessionIds } = open.trigger ?? {};
  return taskIds.some(
    (id, at) =>
      id === task.id && ofSessionIds?.[at] != null && (task.runId === null || taskRunIds?.[at] === task.runId),
  );
}

function aboutTask({ id, runId }: { id: string; runId: string | null }): { task_id: string; run_id?: string } {
  return { task_id: id, ...(runId === null ? {} : { run_id: runId }) };
}

/** As the task projection sees it. */
function endsTask(event: AgUiEvent): boolean {
  return (
    customName(event) === CUSTOM.taskCompleted || normaliseTaskEnd(pickText(customValue(event), 'status')) !== null
  );
}

function sum(a: number, b: number): number {
  return Math.min(a + b, Number.MAX_SAFE_INTEGER);
}
