import { columnText } from '@/db/column-text';
import type { BatchRows, EventRow, InsightRow, QuarantineRow, SessionChange } from '@/lib/event-log/batch-rows';
import type { BatchState } from '@/lib/event-log/read-batch-state';
import { customName, taskEventId } from '@/lib/projections/event-fields';
import { heardLevel } from '@/lib/projections/log-level';
import { isUnderWay, owedDifference, type SessionFold } from '@/lib/projections/session-summary';
import { type AgUiEvent, CUSTOM } from '@/lib/protocol/ag-ui';
import {
  type IngestAnswer,
  type IngestRecord,
  type LogRecord,
  type LostRecord,
  type ProducerRef,
  SERVER_PRODUCER_ID,
  type StatusRecord,
  timeSchema,
} from '@/lib/protocol/envelope';
import { CLOCK_SKEW_MS } from '@/lib/protocol/limits';
import { positionFromNumber } from '@/lib/protocol/position';
import type { ProducerSummary } from '@/lib/protocol/read-models';
import { AgentLedger } from './agent-ledger';
import { insightRow } from './insight-row';
import { type Judgement, rejection } from './judge-record';
import { LogTally } from './log-tally';
import type { RawRecord } from './parse-request';
import { foldOf, projectSession, type SessionBatch } from './project-session';
import type { Opening } from './stamp-requests';

const SEEN_MS = 1_000;

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
 * Decides everything a batch changes, from what is stored and without touching it.
 *
 * Ordering: rows take positions in `seq` order; then every changed task, session and agent takes one of its own.
 * Failure: whatever a record says, it becomes an event, a log line, a change of state or a quarantine row.
 *
 * @param records the batch's new records in `seq` order
 * @param producer the producer's row with its new epoch and last seq, its other counters still to be raised
 */
export function planBatch(
  state: BatchState,
  source: ProducerRef,
  producer: ProducerSummary,
  records: readonly JudgedRecord[],
  receivedAt: number,
): BatchPlan {
  const draft = new BatchDraft(state, producer, receivedAt);
  for (const { raw, judgement } of records) {
    if (judgement.taken) draft.take(judgement.record, raw);
    else draft.quarantine(raw, judgement);
  }
  return {
    rows: { source, receivedAt, ...draft.finish() },
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
  readonly #taskHomes = new Map<string, Set<string>>();
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
    for (const [sessionId, tasks] of state.tasks) for (const { id } of tasks) this.#homesOf(id).add(sessionId);
    for (const { taskId, sessionId } of state.taskHomes) this.#homesOf(taskId).add(sessionId);
  }

  take(record: IngestRecord, raw: RawRecord): void {
    const sessionId = record.kind === 'log' ? undefined : record.sessionId;
    const refusal = this.#refusal(record, sessionId, raw);
    if (refusal !== null) {
      this.quarantine(raw, refusal);
      return;
    }
    const isRepeated = record.kind === 'status' && this.#agents.hasSaid(record.agentId, record.status);
    if (!isRepeated) this.#agents.hear(record.agentId);
    this.#seeClock(record.occurredAt);
    const session = sessionId === undefined ? null : this.#claim(sessionId, record.agentId, record.occurredAt);
    if (session !== null && !this.#isServer && !(isRepeated && isAtRest(session))) session.isHeard = true;
    this.#producer.accepted += 1;
    if (!this.#isServer) this.#producer.agentId = record.agentId;
    switch (record.kind) {
      case 'event':
        if (session !== null) this.#append(session, record.seq, record.occurredAt, record.event);
        return;
      case 'log':
        this.#logs.add(this.#next(), record);
        this.#mark(record);
        return;
      case 'status':
        this.#observe(record);
        return;
      case 'lost':
        this.#declare(record, session === null ? this.#sessionsOf(record.agentId) : [session]);
    }
  }

  /**
   * Whether the record is somebody else's. A session belongs to the agent that first wrote to it, a task to the session
   * that started it. Nothing is adopted: it is parked, where it came from.
   */
  #refusal(record: IngestRecord, sessionId: string | undefined, raw: RawRecord): (Judgement & { taken: false }) | null {
    const session = sessionId === undefined ? null : this.#session(sessionId);
    if (session !== null && session.agentId !== record.agentId) {
      const message = `The session belongs to the agent ${session.agentId}, which wrote to it first.`;
      return rejection(raw, 'session_of_another_agent', message);
    }
    const taskId = record.kind === 'event' ? taskEventId(record.event) : null;
    if (record.kind !== 'event' || taskId === null) return null;
    const homes = this.#homesOf(taskId);
    if (customName(record.event) === CUSTOM.taskStarted) homes.add(record.sessionId);
    if (homes.size === 0 || homes.has(record.sessionId)) return null;
    const message = `The task ${taskId} was started by the session ${[...homes].join(', ')}; what becomes of it belongs there.`;
    return rejection(raw, 'task_of_another_session', message);
  }

  #homesOf(taskId: string): Set<string> {
    // as the database holds it: stored and sent ids meet here
    const key = columnText(taskId);
    const homes = this.#taskHomes.get(key) ?? new Set();
    this.#taskHomes.set(key, homes);
    return homes;
  }

  quarantine(raw: RawRecord, { code, message, agentId, sessionId }: Judgement & { taken: false }): void {
    const { seq } = raw;
    const known = agentId ?? this.#producer.agentId;
    this.#producer.rejected += 1;
    this.rejected.push({ seq, code, message });
    this.#quarantine.push({ position: this.#next(), seq, agentId: known, sessionId, code, message, record: raw });
    if (known !== null) this.#agents.see(known).quarantinedCount += 1;
    const session = sessionId === null ? null : this.#session(sessionId);
    if (session !== null && session.agentId === known) {
      const at = timeSchema.catch(this.#receivedAt).parse(raw.occurredAt);
      this.#append(session, seq, at, { type: 'CUSTOM', name: CUSTOM.quarantined, value: { seq, code, message } });
    }
  }

  finish(): Omit<BatchRows, 'source' | 'receivedAt'> {
    const projections = [...this.#sessions.values()]
      .filter((session) => {
        const { before, entries, insights } = session;
        return before === null || entries.length > 0 || insights > 0 || this.#isNews(session);
      })
      .map((session) => {
        const tasks = this.#state.tasks.get(session.id) ?? [];
        const owed = this.#state.obligations.get(session.id) ?? [];
        return { session, ...projectSession(session, tasks, owed, this.#state.position, this.#receivedAt) };
      });
    for (const { openings } of projections) this.openings.push(...openings);
    const obligations = projections.flatMap((projection) => {
      const { session, obligations: changes } = projection;
      if (changes.length > 0) this.#agents.see(session.agentId).owedCount += owedDifference(changes);
      return changes.map(({ after }) => ({ obligation: after, updatedPosition: this.#next() }));
    });
    const tasks = projections.flatMap((projection) =>
      projection.tasks.map((task) => ({ task, updatedPosition: this.#next() })),
    );
    const sessions = projections.map(({ session, change, announces }): SessionChange => {
      const updatedPosition = announces
        ? positionFromNumber(this.#next())
        : (session.before?.summary.updatedPosition ?? '0');
      if (session.before === null) this.#agents.see(session.agentId).sessionCount += 1;
      return { ...change, summary: { ...change.summary, updatedPosition } };
    });
    const agents = this.#agents.changed(() => this.#next());
    const stillThereAgentIds = this.#agents.stillThere();
    const tag = <T>(pick: (projection: (typeof projections)[number]) => T[]) =>
      projections.flatMap((projection) =>
        pick(projection).map((value) => ({ sessionId: projection.session.id, value })),
      );
    return {
      position: this.#position,
      producer: this.#producer,
      events: this.#events.filter((row) => !projections.some(({ foldedAway }) => foldedAway.has(row))),
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
    const fresh = { id, agentId, before: null, startedAt: at, entries: [], insights: 0, isHeard: false };
    return this.#session(id) ?? this.#remember(fresh);
  }

  #remember(session: SessionBatch): SessionBatch {
    this.#sessions.set(session.id, session);
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
    const concerned = own !== null ? [own] : insight?.sessionId === undefined ? this.#openSessionsOf(agentId) : [];
    for (const session of concerned) session.insights += 1;
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

  #declare({ agentId, seq, occurredAt, lost }: LostRecord, sessions: SessionBatch[]): void {
    const count = (before: number) => Math.min(before + lost.count, Number.MAX_SAFE_INTEGER);
    this.#producer.lost = count(this.#producer.lost);
    const agent = this.#agents.see(agentId);
    agent.lostCount = count(agent.lostCount);
    for (const session of sessions) {
      this.#append(session, seq, occurredAt, {
        type: 'CUSTOM',
        name: CUSTOM.lost,
        value: { count: lost.count, reason: lost.reason },
      });
    }
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
