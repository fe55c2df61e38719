import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { type AgentStatus, readAgentStatus } from '@interlude/protocol/agent-status';
import {
  type EventRecord,
  type IngestRecord,
  type IngestResponse,
  type LogRecord,
  type LostRecord,
  type ProducerRef,
  SERVER_PRODUCER_ID,
  type StatusRecord,
} from '@interlude/protocol/envelope';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { timeSchema } from '@interlude/protocol/field-schemas';
import { readInsight } from '@interlude/protocol/insight';
import { readInterlude, withInterlude, withoutServerMarks } from '@interlude/protocol/interlude-metadata';
import { endsSession, startsSession } from '@interlude/protocol/lifecycle/event-inputs';
import { AHEAD_MS, CLOCK_SKEW_MS, MAX_DERIVED, MAX_FAN_OUT, MAX_SNAPSHOT_PARTS } from '@interlude/protocol/limits';
import { positionFromNumber } from '@interlude/protocol/position';
import { outdatesLists, type ReportedStatus, updateLogLevel } from '@interlude/protocol/projections/reported-status';
import { isReportDue } from '@interlude/protocol/projections/session-summary';
import { partsWithin } from '@interlude/protocol/projections/snapshot-parts';
import type { AgentSummary, ProducerSummary } from '@interlude/protocol/read-models';
import { Yielder } from '@/db/yield-to-loop';
import type { BatchRows, EventRow, InsightRow, QuarantineRow } from '@/lib/server/event-log/batch-rows';
import { partKey } from '@/lib/server/event-log/batch-scope';
import type { BatchState } from '@/lib/server/event-log/read-batch-state';
import { BatchLog, insightRow, limitSignals } from './batch-log';
import type { SessionBatch, SessionEntry } from './batch-sessions';
import type { DerivedBudget } from './derived-requests';
import type { AgentFact } from './facts';
import type { RawRecord } from './parse-request';
import { exitEvent, parseStatus, reconcileLists, requestIdOf } from './parse-status';
import { foldOf, isAtRest } from './project-session';
import { ReadModelWriter } from './read-model-writer';
import type { Opening } from './stamp-requests';
import { OWN, parkedRejection, type TaskMention, TaskRouter, taskMention } from './task-router';
import { rejection, type ValidatedRecord, type Validation } from './validate-record';

/** Maximum loss events per batch for losses without a session. Further losses are only counted on the agent. */
const MAX_LOSS_EVENTS = 10_000;

interface BatchPlan {
  rows: BatchRows;
  rejected: IngestResponse['rejected'];
  openings: Opening[];
}

/**
 * Decides everything that a batch changes, from the stored state and without writing. Yields to the event loop in
 * between.
 *
 * Ordering: rows take positions in `seq` order. Then each changed reply, task, session, agent and inbox item takes one.
 * Failure: every record, with any content, becomes an event, a log line, a state change or a quarantine row.
 *
 * @param records the new records in `seq` order
 * @param producer the producer's row with its new epoch and last seq; this function updates its other counters
 */
export async function planBatch(
  state: BatchState,
  source: ProducerRef,
  producer: ProducerSummary,
  records: readonly ValidatedRecord[],
  receivedAt: number,
): Promise<BatchPlan> {
  const yielder = new Yielder();
  const draft = new BatchDraft(state, producer, receivedAt);
  await yielder.each(state.taskSessions, (task) => draft.tasks.addTaskSession(task));
  for (const tasks of state.tasks.values()) await yielder.each(tasks, (task) => draft.tasks.addTask(task));
  await yielder.each(records, ({ raw, validation }) => {
    if (validation.isValid) draft.add(validation.record, raw);
    else draft.quarantine(raw, validation);
  });
  return {
    rows: { source, receivedAt, ...(await draft.finish(yielder)) },
    rejected: draft.rejected,
    openings: draft.openings,
  };
}

class BatchDraft {
  readonly rejected: IngestResponse['rejected'] = [];
  readonly openings: Opening[] = [];
  readonly tasks: TaskRouter;
  readonly #producer: ProducerSummary;
  readonly #receivedAt: number;
  readonly #readModels: ReadModelWriter;
  readonly #isServer: boolean;
  /** The last loss without a session: its events' values, and the number of sessions known at that point. */
  #loss: { agentId: string; knownSessions: number; values: { count: number; reason: string }[] } | null = null;
  #lossEvents = 0;
  readonly #events: EventRow[] = [];
  readonly #snapshotRoom = { left: MAX_SNAPSHOT_PARTS };
  readonly #derivedBudget: DerivedBudget = { left: MAX_DERIVED };
  readonly #state: BatchState;
  readonly #logs: BatchLog;
  readonly #insights: InsightRow[] = [];
  readonly #quarantine: QuarantineRow[] = [];
  /** Quarantined records that name a session which has not started yet, by `preSessionKey`. */
  readonly #preSessionRecords: Map<string, number>;
  #position: number;

  constructor(state: BatchState, producer: ProducerSummary, receivedAt: number) {
    this.#state = state;
    this.#producer = { ...producer, lastSeenAt: receivedAt };
    this.#preSessionRecords = new Map(state.quarantined.map((row) => [preSessionKey(row), row.count]));
    this.#receivedAt = receivedAt;
    this.#isServer = producer.id === SERVER_PRODUCER_ID;
    this.#readModels = new ReadModelWriter(state, receivedAt, !this.#isServer);
    this.#logs = new BatchLog(state.logs);
    this.#position = state.position;
    this.tasks = new TaskRouter(this.#readModels.sessions, state.position, this.#isServer);
  }

  add(record: IngestRecord | AgentFact, raw: RawRecord): void {
    if (isFact(record)) {
      this.#producer.accepted += 1;
      this.#readModels.applyFact(record);
      return;
    }
    const sessionId = record.kind === 'log' ? undefined : record.sessionId;
    const known = sessionId === undefined ? null : this.#readModels.sessions.find(sessionId);
    if (known !== null && known.agentId !== record.agentId) {
      const message = 'The session belongs to another agent, which wrote to it first. Use another session id.';
      this.quarantine(raw, rejection(raw, 'session_of_another_agent', message));
      return;
    }
    const mention = record.kind === 'event' ? taskMention(record.event) : null;
    const owner = record.kind === 'event' && mention !== null ? this.tasks.ownerOf(record, mention) : OWN;
    const isRepeated = record.kind === 'status' && this.#readModels.agents.repeatsStatus(record.agentId, record.status);
    if (!isRepeated) this.#readModels.agents.markActive(record.agentId);
    this.#checkClock(record.occurredAt);
    const session = sessionId === undefined ? null : this.#readModels.claim(sessionId, record);
    if (session !== null && known === null) this.#addPreSessionRecords(session, record);
    if (session !== null && !this.#isServer && !(isRepeated && isAtRest(session))) session.isActive = true;
    if (mention !== null && (owner.kind === 'unknown' || owner.kind === 'ambiguous')) {
      this.quarantine(raw, parkedRejection(raw, mention, owner), mention);
      return;
    }
    this.#producer.accepted += 1;
    if (!this.#isServer) this.#producer.agentId = record.agentId;
    if (record.kind === 'status' && session !== null) this.#applyStatus(session, record);
    switch (record.kind) {
      case 'event':
        if (session === null) return;
        if (this.#isServer && owner.kind === 'own') this.#readModels.settleParked(record);
        for (const { to, event } of this.tasks.route(record, session, mention, owner)) {
          this.#write(to, record, this.#isServer ? event : withoutServerMarks(event));
        }
        return;
      case 'log':
        this.#logs.add(this.#next(), record);
        this.#addInsight(record);
        return;
      case 'status':
        this.#updateAgent(record);
        return;
      case 'lost':
        this.#addLoss(record, session);
    }
  }

  /** @param task parks the record: it is about this task, whose owner is unproven */
  quarantine(
    raw: RawRecord,
    { code, message, agentId, sessionId }: Validation & { isValid: false },
    task: TaskMention | null = null,
  ): void {
    const { seq } = raw;
    const session = sessionId === null ? null : this.#readModels.sessions.find(sessionId);
    const known = agentId ?? session?.agentId ?? this.#producer.agentId;
    this.#producer.rejected += 1;
    this.rejected.push({ seq, code, message });
    const parked = task === null ? null : { id: task.id, runId: task.runId };
    const fields = { seq, agentId: known, sessionId, code, message, record: raw, task: parked };
    this.#quarantine.push({ position: this.#next(), ...fields });
    if (known !== null) {
      const agent = this.#readModels.agents.get(known);
      agent.quarantinedCount += 1;
      if (parked !== null) agent.parkedCount += 1;
    }
    if (session === null && sessionId !== null && known !== null) {
      const key = preSessionKey({ sessionId, agentId: known });
      this.#preSessionRecords.set(key, (this.#preSessionRecords.get(key) ?? 0) + 1);
    }
    if (session !== null && session.agentId === known) {
      session.quarantined += 1;
      const at = timeSchema.catch(this.#receivedAt).parse(raw.occurredAt);
      this.#append(session, seq, at, { type: 'CUSTOM', name: CUSTOM.quarantined, value: { seq, code, message } });
    }
  }

  /** Reports records that were quarantined before their session started. */
  #addPreSessionRecords(session: SessionBatch, { seq, occurredAt }: { seq: number; occurredAt: number }): void {
    const count = this.#preSessionRecords.get(preSessionKey({ sessionId: session.id, agentId: session.agentId })) ?? 0;
    if (count === 0) return;
    session.quarantined += count;
    const value = { count, message: 'rejected before this session started' };
    this.#append(session, seq, occurredAt, { type: 'CUSTOM', name: CUSTOM.quarantined, value });
  }

  async finish(yielder: Yielder): Promise<Omit<BatchRows, 'source' | 'receivedAt'>> {
    const { derived, foldedAway, openings, ...rows } = await this.#readModels.finish(yielder, () => this.#next());
    this.openings.push(...openings);
    return {
      ...rows,
      position: this.#position,
      producer: this.#producer,
      events: inOrder(this.#events, derived).filter((row) => !foldedAway.has(row)),
      logLines: this.#logs.lines,
      agentLogs: this.#logs.changed(),
      insights: limitSignals(this.#insights),
      logComponents: this.#logs.components(),
      quarantine: this.#quarantine,
    };
  }

  #next(): number {
    this.#position += 1;
    return this.#position;
  }

  /** Appends an event and the events derived from it. */
  #write(to: SessionBatch, { seq, occurredAt }: Moment, sent: AgUiEvent): void {
    const isEnd = endsSession(sent);
    const isRepeatedEnd = isEnd && to.end === 'presumed';
    const event = isRepeatedEnd ? withInterlude(sent, { again: true }) : to.requests.marked(sent);
    const entry = this.#append(to, seq, occurredAt, event);
    this.tasks.follow(to, occurredAt, event);
    if (isEnd) to.end = readInterlude(event).presumed ? 'presumed' : 'told';
    else if (startsSession(event)) to.end = null;
    if (outdatesLists(event)) to.listsKey = null;
    const isInferred = readInterlude(event).presumed === true || (this.#isServer && to.before?.isAway === true);
    const derived = to.requests.apply(entry, this.#derivedBudget, isInferred);
    for (const one of derived) this.#append(to, seq, occurredAt, one);
  }

  #append(session: SessionBatch, seq: number, occurredAt: number, event: AgUiEvent): SessionEntry {
    const position = this.#next();
    const { id: sessionId, agentId } = session;
    const row = { position, sessionId, agentId, seq, occurredAt, entityId: null, turnId: null, event };
    this.#events.push(row);
    const entry = { position: positionFromNumber(position), occurredAt, receivedAt: this.#receivedAt, event };
    const isStored = (id: string) => this.#state.lookedUp.has(partKey(sessionId, id));
    const parts = partsWithin(this.#snapshotRoom, event, isStored);
    const appended = { entry, row, parts };
    session.entries.push(appended);
    this.#position += parts.length;
    return appended;
  }

  #addInsight(record: LogRecord): void {
    const insight = readInsight(record.log.insight);
    if (insight === null) return;
    const row = insightRow(this.#position, record, insight);
    this.#insights.push(row);
    if (row.isFailure) this.#readModels.addFailure(row);
  }

  /** Runners repeat status records, so only a changed state or list is applied. */
  #applyStatus(session: SessionBatch, record: StatusRecord): void {
    const status = parseStatus(record);
    if (status === null) return;
    const { before } = session;
    // An equal status may report a change if any event has arrived since.
    const mayBeNew = session.entries.length > 0 || before === null || isReportDue(foldOf(session, 0));
    const { at, turnId } = status.report ?? {};
    const isNew = status.key !== session.statusKey || (at === null && turnId === null && mayBeNew);
    const hasNewLists = status.lists !== null && status.listsKey !== session.listsKey;
    if (!isNew && !hasNewLists) return;
    session.isActive = !this.#isServer;
    session.statusKey = status.key;
    session.listsKey = status.listsKey;
    if (isNew) {
      session.statuses.push({ position: this.#position, status, occurredAt: record.occurredAt });
      if (status.process === 'there') session.end = null;
    }
    if (status.isAhead) return;
    const { process } = status;
    if (isNew && process !== null && process !== 'there' && session.end === null) {
      this.#write(session, record, exitEvent(process));
    }
    if (status.lists !== null) this.#reconcile(session, status.lists, record, status.unreachable !== null);
  }

  /** Writes the events that follow from a status record's lists of tasks and requests. */
  #reconcile(session: SessionBatch, lists: StatusLists, moment: Moment, isUnreachable: boolean): void {
    const passedIds = new Set(session.requests.passedIds);
    const passed = (this.#state.givenUp.get(session.id) ?? []).filter(({ payload }) =>
      passedIds.has(requestIdOf(payload)),
    );
    // As in the projection, the session's tasks run again with its first record.
    if (foldOf(session, 0).away?.isSilent) this.tasks.resumeTasks(session);
    // Only the next record can reopen requests that this batch has given up on.
    const isNewlyPassed = (id: string) => passedIds.has(id) && session.before?.memory.givenUp?.includes(id) !== true;
    if (lists.requestIds?.some(isNewlyPassed)) session.listsKey = null;
    const open = { tasks: this.tasks.openOf(session), requestIds: session.requests.ownIds };
    for (const event of reconcileLists(lists, open, passed, isUnreachable)) {
      if (this.#derivedBudget.left <= 0) {
        // The next record continues the work.
        session.listsKey = null;
        return;
      }
      this.#derivedBudget.left -= 1;
      this.#write(session, moment, event);
    }
  }

  #updateAgent({ agentId, occurredAt, status }: StatusRecord): void {
    const agent = this.#readModels.agents.get(agentId);
    if (!this.#readModels.agents.repeatsStatus(agentId, status)) agent.status = status;
    agent.statusAt = occurredAt;
    const report = readAgentStatus(status);
    updateClockSkew(agent, occurredAt - this.#receivedAt, report.outbox);
    if (report.kind !== undefined) agent.kind = report.kind;
    if (report.runner !== undefined && report.everyMs !== undefined) this.#readModels.agents.markReporting(agentId);
    agent.logLevel = updateLogLevel(agent.logLevel, report, this.#receivedAt);
  }

  #addLoss({ agentId, seq, occurredAt, lost }: LostRecord, session: SessionBatch | null): void {
    this.#producer.lost = sum(this.#producer.lost, lost.count);
    const agent = this.#readModels.agents.get(agentId);
    agent.lostCount = sum(agent.lostCount, lost.count);
    const write = (to: SessionBatch) => {
      const value = { count: lost.count, reason: lost.reason };
      this.#append(to, seq, occurredAt, { type: 'CUSTOM', name: CUSTOM.lost, value });
      return value;
    };
    if (session !== null) {
      write(session);
      return;
    }
    // Adds to the previous loss if that was reported in the same sessions.
    const knownSessions = this.#readModels.sessions.size;
    if (this.#loss?.agentId === agentId && this.#loss.knownSessions === knownSessions) {
      for (const value of this.#loss.values) {
        value.count = sum(value.count, lost.count);
        if (value.reason !== lost.reason) value.reason = 'several reasons';
      }
      return;
    }
    const sessions = this.#readModels.sessions.writtenFor(agentId).slice(-MAX_FAN_OUT);
    if (this.#lossEvents + sessions.length > MAX_LOSS_EVENTS) return;
    this.#lossEvents += sessions.length;
    this.#loss = { agentId, knownSessions: this.#readModels.sessions.size, values: sessions.map(write) };
  }

  #checkClock(occurredAt: number): void {
    const skewMs = occurredAt - this.#receivedAt;
    if (Math.abs(skewMs) > CLOCK_SKEW_MS) this.#producer.clockSkewMs = skewMs;
  }
}

/**
 * Updates an agent's clock skew from a status record. A record that waited in the outbox looks like one of a slow clock,
 * so a slow clock is believed only if the outbox had no older records. Changes within `AHEAD_MS` are delivery jitter;
 * ignoring them leaves the agent's row unchanged.
 */
function updateClockSkew(agent: AgentSummary, skewMs: number, outbox: AgentStatus['outbox']): void {
  const mayHaveWaited = outbox === undefined || (outbox.oldestAgeMs ?? 0) > AHEAD_MS;
  if (skewMs < -CLOCK_SKEW_MS && mayHaveWaited) return;
  if (Math.abs(skewMs) <= CLOCK_SKEW_MS) delete agent.clockSkewMs;
  else if (Math.abs(skewMs - (agent.clockSkewMs ?? 0)) > AHEAD_MS) agent.clockSkewMs = skewMs;
}

/** The record that caused an event. */
type Moment = Pick<EventRecord, 'seq' | 'occurredAt'>;
type StatusLists = NonNullable<ReportedStatus['lists']>;

function isFact(record: IngestRecord | AgentFact): record is AgentFact {
  return !('seq' in record);
}

function inOrder(events: readonly EventRow[], derived: readonly EventRow[]): readonly EventRow[] {
  return derived.length === 0 ? events : [...events, ...derived].sort((a, b) => a.position - b.position);
}

function sum(a: number, b: number): number {
  return Math.min(a + b, Number.MAX_SAFE_INTEGER);
}

function preSessionKey({ sessionId, agentId }: { sessionId: string; agentId: string }): string {
  return JSON.stringify([sessionId, agentId]);
}
