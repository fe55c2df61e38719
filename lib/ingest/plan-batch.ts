import { Pace } from '@/db/next-turn';
import type { BatchRows, EventRow, InsightRow, QuarantineRow, SessionChange } from '@/lib/event-log/batch-rows';
import type { BatchState } from '@/lib/event-log/read-batch-state';
import { customName, customValue, pickNumber } from '@/lib/projections/event-fields';
import { heardLevel } from '@/lib/projections/log-level';
import { owedDifference } from '@/lib/projections/session-summary';
import { type AgUiEvent, CUSTOM } from '@/lib/protocol/ag-ui';
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
import { readInsight } from '@/lib/protocol/insight';
import { CLOCK_SKEW_MS, MAX_FANNED_OUT } from '@/lib/protocol/limits';
import { positionFromNumber } from '@/lib/protocol/position';
import type { ProducerSummary } from '@/lib/protocol/read-models';
import { isOfHook } from '@/lib/protocol/signals';
import { AgentLedger } from './agent-ledger';
import { BatchSessions } from './batch-sessions';
import type { AgentFact } from './facts';
import { FailuresAround, markWith, sumOf, unmark } from './failure-tally';
import { insightRow, keptInsights } from './insight-row';
import { type Judgement, rejection } from './judge-record';
import { LogTally } from './log-tally';
import type { RawRecord } from './parse-request';
import { isAtRest, projectSession, type SessionBatch, type SessionProjection } from './project-session';
import { SnapshotRoom, unmarked, withDerived } from './snapshot-room';
import type { Opening } from './stamp-requests';
import { OWN, type TaskMention, taskMention } from './task-owners';
import { TaskRouter, whyParked } from './task-router';

const SEEN_MS = 1_000;
/** Most places in which a batch says what was lost in no session by name; beyond it only the agent counts it. */
const MAX_LOSSES_SAID = 10_000;

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
  await pace.each(state.taskHomes, (home) => draft.tasks.knowHome(home));
  for (const tasks of state.tasks.values()) await pace.each(tasks, (task) => draft.tasks.knowTask(task));
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
  readonly tasks: TaskRouter;
  readonly #state: BatchState;
  readonly #producer: ProducerSummary;
  readonly #receivedAt: number;
  readonly #sessions: BatchSessions;
  readonly #agents: AgentLedger;
  readonly #isServer: boolean;
  readonly #failedAround = new FailuresAround();
  /** What was last declared lost in no session by name, where it is said, and of how many sessions anybody knew. */
  #loss: { agentId: string; knownSessions: number; said: { count: number; reason: string }[] } | null = null;
  #lossesSaid = 0;
  readonly #events: EventRow[] = [];
  readonly #snapshots: SnapshotRoom;
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
    this.#snapshots = new SnapshotRoom(state.lookedUp);
    this.#sessions = new BatchSessions(state);
    this.tasks = new TaskRouter(this.#sessions, this.#isServer);
  }

  take(record: IngestRecord | AgentFact, raw: RawRecord): void {
    if (isFact(record)) {
      this.#producer.accepted += 1;
      this.#learn(record);
      return;
    }
    const sessionId = record.kind === 'log' ? undefined : record.sessionId;
    const refusal = this.#refusal(record, sessionId, raw);
    if (refusal !== null) {
      this.quarantine(raw, refusal);
      return;
    }
    const mention = record.kind === 'event' ? taskMention(record.event) : null;
    const owner = record.kind === 'event' && mention !== null ? this.tasks.ownerOf(record, mention) : OWN;
    const isRepeated = record.kind === 'status' && this.#agents.hasSaid(record.agentId, record.status);
    if (!isRepeated) this.#agents.hear(record.agentId);
    this.#seeClock(record.occurredAt);
    const session = sessionId === undefined ? null : this.#claim(sessionId, record);
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
        if (owner.kind === 'own') this.#settleParked(record);
        for (const { to, event } of this.tasks.route(record, session, mention, owner)) {
          this.#append(to, record.seq, record.occurredAt, unmarked(event));
        }
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
    const session = sessionId === undefined ? null : this.#sessions.find(sessionId);
    if (session !== null && session.agentId !== record.agentId) {
      const message = `The session belongs to the agent ${session.agentId}, which wrote to it first.`;
      return rejection(raw, 'session_of_another_agent', message);
    }
    return null;
  }

  /** A person has said what becomes of parked records: the agent has fewer. It is said where they were told. */
  #settleParked({ agentId, sessionId, event }: EventRecord): void {
    const name = customName(event);
    if (!this.#isServer || (name !== CUSTOM.parkedAssigned && name !== CUSTOM.parkedDiscarded)) return;
    const value = customValue(event);
    if (value.reported_by !== sessionId) return;
    const agent = this.#agents.see(agentId);
    agent.parkedCount = Math.max(0, agent.parkedCount - (pickNumber(value, 'count') ?? 0));
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
    const session = sessionId === null ? null : this.#sessions.find(sessionId);
    if (session !== null && session.agentId === known) {
      const at = timeSchema.catch(this.#receivedAt).parse(raw.occurredAt);
      this.#append(session, seq, at, { type: 'CUSTOM', name: CUSTOM.quarantined, value: { seq, code, message } });
    }
  }

  async finish(pace: Pace): Promise<Omit<BatchRows, 'source' | 'receivedAt'>> {
    this.#failedAround.markIn((agentId) => this.#sessions.openOf(agentId));
    const projections: (SessionProjection & { session: SessionBatch })[] = [];
    for (const session of this.#sessions.values()) {
      const { before, entries, failures } = session;
      if (before !== null && entries.length === 0 && failures.all === 0 && !this.#isNews(session)) continue;
      const tasks = this.#state.tasks.get(session.id) ?? [];
      const owed = this.#state.obligations.get(session.id) ?? [];
      const said = this.#state.said.get(session.id) ?? [];
      const stored = { tasks, obligations: owed, said, position: this.#state.position };
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
    const tasks: BatchRows['tasks'] = [];
    for (const projection of projections) {
      await pace.each(projection.tasks, (task) => {
        tasks.push({ task, updatedPosition: this.#next() });
      });
    }
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
      events: withDerived(this.#events, projections).filter((row) => !foldedAway.has(row)),
      folds: projections.flatMap((projection) => projection.folds),
      logLines: this.#logs.lines,
      agentLogs: this.#logs.changed(),
      insights: keptInsights(this.#insights),
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
    return isHeard && (before?.isAway === true || Math.abs(this.#receivedAt - (before?.seenAt ?? 0)) >= SEEN_MS);
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
    const parts = this.#snapshots.partsOf(session.id, event);
    session.entries.push({ entry, row, parts });
    this.#position += parts.length;
  }

  #claim(id: string, { agentId, occurredAt }: IngestRecord): SessionBatch {
    return this.#sessions.claim(id, agentId, occurredAt, this.#failedAround.before(agentId));
  }

  /**
   * What failed is marked on the session it names, if that is the agent's own; what says none may concern each of its
   * sessions that is not done.
   */
  #mark(record: LogRecord): void {
    const insight = readInsight(record.log.insight);
    if (insight === null) return;
    const { agentId } = record;
    const { session } = insight;
    const named = session === null || session.id === null ? null : this.#sessions.find(session.id);
    const own = named?.agentId === agentId ? named : null;
    const row = insightRow(this.#position, record, insight);
    this.#insights.push(row);
    if (!row.isFailure) return;
    const agent = this.#agents.see(agentId);
    agent.insightCount += 1;
    if (!isOfHook(row)) agent.otherFailureCount += 1;
    if (own !== null) markWith(own, row);
    else if (session === null) this.#failedAround.note(row);
  }

  #observe({ agentId, occurredAt, status }: StatusRecord): void {
    const agent = this.#agents.see(agentId);
    if (!this.#agents.hasSaid(agentId, status)) agent.status = status;
    agent.statusAt = occurredAt;
    if (typeof status.kind === 'string') agent.kind = status.kind;
    agent.logLevel = heardLevel(agent.logLevel, status, this.#receivedAt);
  }

  /** What the server itself knows of an agent. */
  #learn(fact: AgentFact): void {
    const agent = this.#agents.announce(fact.agentId);
    switch (fact.kind) {
      case 'runner-connected':
        if (agent.connection === 'away' || agent.runnerId !== fact.runnerId) agent.connectedSince = this.#receivedAt;
        agent.connection = 'connected';
        agent.runnerId = fact.runnerId;
        agent.lastSeenAt = this.#receivedAt;
        return;
      case 'runner-away':
        agent.connection = 'away';
        agent.connectedSince = this.#receivedAt;
        return;
      case 'level-asked':
        agent.logLevel = { ...agent.logLevel, desired: fact.desired };
        return;
      case 'clock-moved':
        agent.lastSeenAt = fact.lastSeenAt;
        return;
      case 'failures-seen': {
        const { all, other } = sumOf(...fact.unseen.values());
        agent.insightCount = all;
        agent.otherFailureCount = other;
        for (const session of fact.sessionIds.map((id) => this.#sessions.find(id))) {
          if (session !== null) unmark(session, fact.upTo, fact.unseen);
        }
      }
    }
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
    const sessions = this.#sessions.writtenFor(agentId).slice(-MAX_FANNED_OUT);
    if (this.#lossesSaid + sessions.length > MAX_LOSSES_SAID) return;
    this.#lossesSaid += sessions.length;
    this.#loss = { agentId, knownSessions: this.#sessions.size, said: sessions.map((one) => say(one)) };
  }

  #seeClock(occurredAt: number): void {
    const skewMs = occurredAt - this.#receivedAt;
    if (Math.abs(skewMs) > CLOCK_SKEW_MS) this.#producer.clockSkewMs = skewMs;
  }
}

function isFact(record: IngestRecord | AgentFact): record is AgentFact {
  return !('seq' in record);
}

function sum(a: number, b: number): number {
  return Math.min(a + b, Number.MAX_SAFE_INTEGER);
}
