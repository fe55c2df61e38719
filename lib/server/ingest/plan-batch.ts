import { type AgUiEvent, CUSTOM } from '@interlude/protocol/ag-ui';
import { readAgentStatus } from '@interlude/protocol/agent-status';
import {
  type EventRecord,
  type IngestAnswer,
  type IngestRecord,
  type LogRecord,
  type LostRecord,
  type ProducerRef,
  SERVER_PRODUCER_ID,
  type StatusRecord,
} from '@interlude/protocol/envelope';
import { timeSchema } from '@interlude/protocol/field-schemas';
import { readInsight } from '@interlude/protocol/insight';
import { interludeOf } from '@interlude/protocol/interlude-metadata';
import { endsSession, startsSession } from '@interlude/protocol/lifecycle/event-inputs';
import { CLOCK_SKEW_MS, MAX_DERIVED, MAX_FANNED_OUT, MAX_SNAPSHOT_PARTS } from '@interlude/protocol/limits';
import { positionFromNumber } from '@interlude/protocol/position';
import { heardLevel } from '@interlude/protocol/projections/log-level';
import { isReportDue } from '@interlude/protocol/projections/session-summary';
import { partsWithin } from '@interlude/protocol/projections/snapshot-parts';
import { outdatesLists, type StatusTold } from '@interlude/protocol/projections/status-told';
import type { ProducerSummary } from '@interlude/protocol/read-models';
import { unmarked, withInterlude } from '@interlude/protocol/with-interlude';
import { Yielder } from '@/db/yield-to-loop';
import type { BatchRows, EventRow, InsightRow, QuarantineRow } from '@/lib/server/event-log/batch-rows';
import { partKey } from '@/lib/server/event-log/batch-scope';
import type { BatchState } from '@/lib/server/event-log/read-batch-state';
import { BatchLog, insightRow, limitSignals } from './batch-log';
import type { SessionBatch, SessionEntry } from './batch-sessions';
import type { DerivedRoom } from './derived-requests';
import type { AgentFact } from './facts';
import type { RawRecord } from './parse-request';
import { exitEvent, parseStatus, reconcileLists, requestIdOf } from './parse-status';
import { foldOf, isAtRest } from './project-session';
import { ReadModelWriter } from './read-model-writer';
import type { Opening } from './stamp-requests';
import { OWN, parkedRejection, type TaskMention, TaskRouter, taskMention } from './task-router';
import { rejection, type ValidatedRecord, type Validation } from './validate-record';

/** Most events that a batch writes for losses that name no session; beyond it only the agent counts them. */
const MAX_LOSSES_SAID = 10_000;

export interface BatchPlan {
  rows: BatchRows;
  rejected: IngestAnswer['rejected'];
  openings: Opening[];
}

/**
 * Decides everything that a batch changes, from what is stored and without touching it. Others get their turns
 * meanwhile, however much it is.
 *
 * Ordering: rows take positions in `seq` order; then every changed task, session and agent takes one of its own.
 * Failure: whatever a record holds, it becomes an event, a log line, a change of state or a quarantine row.
 *
 * @param records the batch's new records in `seq` order
 * @param producer the producer's row with its new epoch and last seq; its other counters are raised here
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
  await yielder.each(state.taskHomes, (home) => draft.tasks.addHome(home));
  for (const tasks of state.tasks.values()) await yielder.each(tasks, (task) => draft.tasks.addTask(task));
  await yielder.each(records, ({ raw, validation }) => {
    if (validation.isValid) draft.take(validation.record, raw);
    else draft.quarantine(raw, validation);
  });
  return {
    rows: { source, receivedAt, ...(await draft.finish(yielder)) },
    rejected: draft.rejected,
    openings: draft.openings,
  };
}

class BatchDraft {
  readonly rejected: IngestAnswer['rejected'] = [];
  readonly openings: Opening[] = [];
  readonly tasks: TaskRouter;
  readonly #producer: ProducerSummary;
  readonly #receivedAt: number;
  readonly #fleet: ReadModelWriter;
  readonly #isServer: boolean;
  /** The last loss that named no session: where it was written, and how many sessions were known then. */
  #loss: { agentId: string; knownSessions: number; said: { count: number; reason: string }[] } | null = null;
  #lossesSaid = 0;
  readonly #events: EventRow[] = [];
  readonly #snapshotRoom = { left: MAX_SNAPSHOT_PARTS };
  readonly #lookedUp: BatchState['lookedUp'];
  readonly #derivedRoom: DerivedRoom = { left: MAX_DERIVED };
  readonly #openings: BatchState['givenUp'];
  readonly #logs: BatchLog;
  readonly #insights: InsightRow[] = [];
  readonly #quarantine: QuarantineRow[] = [];
  /** How many records of an agent that name a session are in quarantine, while the session has not begun. */
  readonly #early: PreSessionRecords;
  #position: number;

  constructor(state: BatchState, producer: ProducerSummary, receivedAt: number) {
    this.#producer = { ...producer, lastSeenAt: receivedAt };
    this.#early = new PreSessionRecords(state.quarantined);
    this.#receivedAt = receivedAt;
    this.#isServer = producer.id === SERVER_PRODUCER_ID;
    this.#fleet = new ReadModelWriter(state, receivedAt, !this.#isServer);
    this.#openings = state.givenUp;
    this.#logs = new BatchLog(state.logs);
    this.#position = state.position;
    this.#lookedUp = state.lookedUp;
    this.tasks = new TaskRouter(this.#fleet.sessions, state.position, this.#isServer);
  }

  take(record: IngestRecord | AgentFact, raw: RawRecord): void {
    if (isFact(record)) {
      this.#producer.accepted += 1;
      this.#fleet.applyFact(record);
      return;
    }
    const sessionId = record.kind === 'log' ? undefined : record.sessionId;
    const known = sessionId === undefined ? null : this.#fleet.sessions.find(sessionId);
    if (known !== null && known.agentId !== record.agentId) {
      const message = 'The session belongs to another agent, which wrote to it first.';
      this.quarantine(raw, rejection(raw, 'session_of_another_agent', message));
      return;
    }
    const mention = record.kind === 'event' ? taskMention(record.event) : null;
    const owner = record.kind === 'event' && mention !== null ? this.tasks.ownerOf(record, mention) : OWN;
    const isRepeated = record.kind === 'status' && this.#fleet.agents.repeatsStatus(record.agentId, record.status);
    if (!isRepeated) this.#fleet.agents.markActive(record.agentId);
    this.#seeClock(record.occurredAt);
    const session = sessionId === undefined ? null : this.#fleet.claim(sessionId, record);
    if (session !== null && known === null) this.#begin(session, record);
    if (session !== null && !this.#isServer && !(isRepeated && isAtRest(session))) session.isActive = true;
    if (mention !== null && (owner.kind === 'nobody' || owner.kind === 'several')) {
      this.quarantine(raw, parkedRejection(raw, mention, owner), mention);
      return;
    }
    this.#producer.accepted += 1;
    if (!this.#isServer) this.#producer.agentId = record.agentId;
    if (record.kind === 'status' && session !== null) this.#hear(session, record);
    switch (record.kind) {
      case 'event':
        if (session === null) return;
        if (this.#isServer && owner.kind === 'own') this.#fleet.settleParked(record);
        for (const { to, event } of this.tasks.route(record, session, mention, owner)) {
          this.#tell(to, record, this.#isServer ? event : unmarked(event));
        }
        return;
      case 'log':
        this.#logs.add(this.#next(), record);
        this.#keepInsight(record);
        return;
      case 'status':
        this.#observe(record);
        return;
      case 'lost':
        this.#declare(record, session);
    }
  }

  /** @param task if given, parks the record: it is about this task, and nothing proves whose task that is */
  quarantine(
    raw: RawRecord,
    { code, message, agentId, sessionId }: Validation & { isValid: false },
    task: TaskMention | null = null,
  ): void {
    const { seq } = raw;
    const session = sessionId === null ? null : this.#fleet.sessions.find(sessionId);
    const known = agentId ?? session?.agentId ?? this.#producer.agentId;
    this.#producer.rejected += 1;
    this.rejected.push({ seq, code, message });
    const parked = task === null ? null : { id: task.id, runId: task.runId };
    const kept = { seq, agentId: known, sessionId, code, message, record: raw, task: parked };
    this.#quarantine.push({ position: this.#next(), ...kept });
    if (known !== null) {
      const agent = this.#fleet.agents.get(known);
      agent.quarantinedCount += 1;
      if (parked !== null) agent.parkedCount += 1;
    }
    if (session === null && sessionId !== null && known !== null) this.#early.add(sessionId, known);
    if (session !== null && session.agentId === known) {
      session.quarantined += 1;
      const at = timeSchema.catch(this.#receivedAt).parse(raw.occurredAt);
      this.#append(session, seq, at, { type: 'CUSTOM', name: CUSTOM.quarantined, value: { seq, code, message } });
    }
  }

  /** Records that were refused before the session began are missing in the session, too. */
  #begin(session: SessionBatch, { seq, occurredAt }: { seq: number; occurredAt: number }): void {
    const count = this.#early.take(session.id, session.agentId);
    if (count === 0) return;
    session.quarantined += count;
    const value = { count, message: 'from before this session began' };
    this.#append(session, seq, occurredAt, { type: 'CUSTOM', name: CUSTOM.quarantined, value });
  }

  async finish(yielder: Yielder): Promise<Omit<BatchRows, 'source' | 'receivedAt'>> {
    const { derived, foldedAway, openings, ...rows } = await this.#fleet.finish(yielder, () => this.#next());
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

  /** Appends an event, and what follows from it. */
  #tell(to: SessionBatch, { seq, occurredAt }: Moment, told: AgUiEvent): void {
    const isEnd = endsSession(told);
    const isAgain = isEnd && to.end === 'presumed';
    const event = isAgain ? withInterlude(told, { again: true }) : to.requests.marked(told);
    const entry = this.#append(to, seq, occurredAt, event);
    this.tasks.follow(to, occurredAt, event);
    if (isEnd) to.end = interludeOf(event).presumed ? 'presumed' : 'told';
    else if (startsSession(event)) to.end = null;
    if (outdatesLists(event)) to.listsKey = null;
    const isGuess = interludeOf(event).presumed === true || (this.#isServer && to.before?.isAway === true);
    const derived = to.requests.take(entry, this.#derivedRoom, isGuess);
    for (const one of derived) this.#append(to, seq, occurredAt, one);
  }

  #append(session: SessionBatch, seq: number, occurredAt: number, event: AgUiEvent): SessionEntry {
    const position = this.#next();
    const { id: sessionId, agentId } = session;
    const row = { position, sessionId, agentId, seq, occurredAt, entityId: null, turnId: null, event };
    this.#events.push(row);
    const entry = { position: positionFromNumber(position), occurredAt, receivedAt: this.#receivedAt, event };
    const isTaken = (id: string) => this.#lookedUp.has(partKey(sessionId, id));
    const parts = partsWithin(this.#snapshotRoom, event, isTaken);
    const appended = { entry, row, parts };
    session.entries.push(appended);
    this.#position += parts.length;
    return appended;
  }

  /** What a line says besides its message. */
  #keepInsight(record: LogRecord): void {
    const insight = readInsight(record.log.insight);
    if (insight === null) return;
    const row = insightRow(this.#position, record, insight);
    this.#insights.push(row);
    if (row.isFailure) this.#fleet.addFailure(row);
  }

  /** Status records repeat themselves: only news is applied. */
  #hear(session: SessionBatch, record: StatusRecord): void {
    const told = parseStatus(record);
    if (told === null) return;
    const { before } = session;
    // The same words may be a new report, if anything has happened since.
    const mayBeNew = session.entries.length > 0 || before === null || isReportDue(foldOf(session, 0));
    const { at, turnId } = told.report ?? {};
    const isNews = told.key !== session.statusKey || (at === null && turnId === null && mayBeNew);
    const isListed = told.lists !== null && told.listsKey !== session.listsKey;
    if (!isNews && !isListed) return;
    session.isActive = !this.#isServer;
    session.statusKey = told.key;
    session.listsKey = told.listsKey;
    if (isNews) {
      session.statuses.push({ position: this.#position, status: told });
      if (told.process === 'there') session.end = null;
    }
    if (told.isAhead) return;
    const { process } = told;
    if (isNews && process !== null && process !== 'there' && session.end === null) {
      this.#tell(session, record, exitEvent(process));
    }
    if (told.lists !== null) this.#compare(session, told.lists, record, told.unreachable !== null);
  }

  /** What follows from the work that a status record lists. */
  #compare(
    session: SessionBatch,
    lists: NonNullable<StatusTold['lists']>,
    moment: Moment,
    isUnreachable: boolean,
  ): void {
    const passedIds = new Set(session.requests.passedIds);
    const passed = (this.#openings.get(session.id) ?? []).filter(({ payload }) => passedIds.has(requestIdOf(payload)));
    // as the projection will have it: its tasks run again with its first word
    if (foldOf(session, 0).away?.isSilent) this.tasks.hearAgain(session);
    // What this batch itself has given up can be opened again with the next record only.
    const isNewlyPassed = (id: string) => passedIds.has(id) && session.before?.memory.givenUp?.includes(id) !== true;
    if (lists.requestIds?.some(isNewlyPassed)) session.listsKey = null;
    const open = { tasks: this.tasks.openOf(session), requestIds: session.requests.ownIds };
    for (const event of reconcileLists(lists, open, passed, isUnreachable)) {
      if (this.#derivedRoom.left <= 0) {
        // the next record goes on with it
        session.listsKey = null;
        return;
      }
      this.#derivedRoom.left -= 1;
      this.#tell(session, moment, event);
    }
  }

  #observe({ agentId, occurredAt, status }: StatusRecord): void {
    const agent = this.#fleet.agents.get(agentId);
    if (!this.#fleet.agents.repeatsStatus(agentId, status)) agent.status = status;
    agent.statusAt = occurredAt;
    const said = readAgentStatus(status);
    if (said.kind !== undefined) agent.kind = said.kind;
    if (said.runner !== undefined && said.everyMs !== undefined) this.#fleet.agents.markReporting(agentId);
    agent.logLevel = heardLevel(agent.logLevel, said, this.#receivedAt);
  }

  #declare({ agentId, seq, occurredAt, lost }: LostRecord, session: SessionBatch | null): void {
    this.#producer.lost = sum(this.#producer.lost, lost.count);
    const agent = this.#fleet.agents.get(agentId);
    agent.lostCount = sum(agent.lostCount, lost.count);
    const say = (where: SessionBatch) => {
      const said = { count: lost.count, reason: lost.reason };
      this.#append(where, seq, occurredAt, { type: 'CUSTOM', name: CUSTOM.lost, value: said });
      return said;
    };
    if (session !== null) {
      say(session);
      return;
    }
    // A loss right behind one that went to all sessions is added to that one.
    const knownSessions = this.#fleet.sessions.size;
    if (this.#loss?.agentId === agentId && this.#loss.knownSessions === knownSessions) {
      for (const said of this.#loss.said) {
        said.count = sum(said.count, lost.count);
        if (said.reason !== lost.reason) said.reason = 'several reasons';
      }
      return;
    }
    const sessions = this.#fleet.sessions.writtenFor(agentId).slice(-MAX_FANNED_OUT);
    if (this.#lossesSaid + sessions.length > MAX_LOSSES_SAID) return;
    this.#lossesSaid += sessions.length;
    this.#loss = { agentId, knownSessions: this.#fleet.sessions.size, said: sessions.map(say) };
  }

  #seeClock(occurredAt: number): void {
    const skewMs = occurredAt - this.#receivedAt;
    if (Math.abs(skewMs) > CLOCK_SKEW_MS) this.#producer.clockSkewMs = skewMs;
  }
}

/** Which record it follows from. */
type Moment = Pick<EventRecord, 'seq' | 'occurredAt'>;

function isFact(record: IngestRecord | AgentFact): record is AgentFact {
  return !('seq' in record);
}

/** The rows of a batch with those derived from its snapshots, by position. */
function inOrder(events: readonly EventRow[], derived: readonly EventRow[]): readonly EventRow[] {
  return derived.length === 0 ? events : [...events, ...derived].sort((a, b) => a.position - b.position);
}

function sum(a: number, b: number): number {
  return Math.min(a + b, Number.MAX_SAFE_INTEGER);
}

/**
 * How many records in quarantine name a session that has not begun: those stored before, and those of this batch. The
 * session that begins with that agent lacks them.
 */
class PreSessionRecords {
  readonly #counts: Map<string, number>;

  constructor(stored: readonly { sessionId: string; agentId: string; count: number }[]) {
    this.#counts = new Map(stored.map(({ sessionId, agentId, count }) => [sessionAgentKey(sessionId, agentId), count]));
  }

  add(sessionId: string, agentId: string): void {
    const key = sessionAgentKey(sessionId, agentId);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  take(sessionId: string, agentId: string): number {
    return this.#counts.get(sessionAgentKey(sessionId, agentId)) ?? 0;
  }
}

function sessionAgentKey(sessionId: string, agentId: string): string {
  return JSON.stringify([sessionId, agentId]);
}
