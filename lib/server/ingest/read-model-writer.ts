import type { EventRecord, IngestRecord } from '@interlude/protocol/envelope';
import { CUSTOM, customName, customValue, pickNumber } from '@interlude/protocol/event-fields';
import type { InboxMarks } from '@interlude/protocol/inbox';
import { isHookSignal } from '@interlude/protocol/insight';
import { positionFromNumber } from '@interlude/protocol/position';
import { openDelta, overdueDelta } from '@interlude/protocol/projections/session-summary';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { countedStateOf, hasCrashed } from '@interlude/protocol/session-predicates';
import type { Yielder } from '@/db/yield-to-loop';
import type { BatchRows, InsightRow, SessionChange } from '@/lib/server/event-log/batch-rows';
import type { BatchState } from '@/lib/server/event-log/read-batch-state';
import { AgentLedger } from './agent-ledger';
import { addFailure, BatchSessions, removeSeenFailures, type SessionBatch, UnassignedFailures } from './batch-sessions';
import type { AgentFact } from './facts';
import { InboxLedger } from './inbox-ledger';
import { projectSession, type SessionProjection, type SessionRows } from './project-session';

const SEEN_STORE_MS = 1_000;
type ReadModelChanges = SessionRows &
  Pick<
    BatchRows,
    | 'obligations'
    | 'tasks'
    | 'sessions'
    | 'agents'
    | 'inbox'
    | 'seenAgentIds'
    | 'writtenSessionIds'
    | 'reportingAgentIds'
  >;

/**
 * Derives the read-model rows of a batch: its sessions with their turns, tasks and obligations, its agents and their
 * counts. The only code that does. The event log then writes the rows. Producers report events and failures; the server
 * reports facts.
 *
 * Ordering: each changed obligation, task, session, agent and inbox item takes a position, in this order.
 */
export class ReadModelWriter {
  readonly sessions: BatchSessions;
  readonly agents: AgentLedger;
  readonly #state: BatchState;
  readonly #receivedAt: number;
  readonly #unassignedFailures = new UnassignedFailures();
  readonly #failures = new Map<string, InsightRow>();
  readonly #marks = new Map<string, InboxMarks>();

  /** @param isSignOfLife true if the agents themselves sent the batch */
  constructor(state: BatchState, receivedAt: number, isSignOfLife: boolean) {
    this.#state = state;
    this.#receivedAt = receivedAt;
    this.sessions = new BatchSessions(state);
    this.agents = new AgentLedger(state.agents, receivedAt, isSignOfLife);
  }

  /** Returns the record's session. If it had no owner, it belongs to the record's agent from now on. */
  claim(id: string, { agentId, occurredAt }: IngestRecord): SessionBatch {
    return this.sessions.claim(id, agentId, occurredAt, this.#unassignedFailures.before(agentId));
  }

  /** Marks the session that a failure names, if the agent owns it; a failure without a session marks all open ones. */
  addFailure(row: InsightRow): void {
    const agent = this.agents.get(row.agentId);
    agent.insightCount += 1;
    this.#failures.set(row.agentId, row);
    if (!isHookSignal(row)) agent.otherFailureCount += 1;
    if (row.sessionId === null) {
      this.#unassignedFailures.note(row);
      return;
    }
    const named = this.sessions.find(row.sessionId);
    if (named?.agentId === row.agentId) addFailure(named, row);
  }

  /** Subtracts settled parked records from the counts of the agent, and of the session that reported them. */
  settleParked({ agentId, sessionId, event }: EventRecord): void {
    const name = customName(event);
    if (name !== CUSTOM.parkedAssigned && name !== CUSTOM.parkedDiscarded) return;
    const value = customValue(event);
    if (value.reported_by !== sessionId) return;
    const count = pickNumber(value, 'count') ?? 0;
    const agent = this.agents.get(agentId);
    agent.parkedCount -= count;
    agent.quarantinedCount -= count;
    const session = this.sessions.find(sessionId);
    if (session !== null) session.quarantined -= count;
  }

  applyFact(fact: AgentFact): void {
    const session = 'sessionId' in fact ? this.sessions.find(fact.sessionId) : null;
    switch (fact.kind) {
      case 'inbox-marked':
        for (const [id, marks] of fact.marks) this.#marks.set(id, marks);
        return;
      case 'marks-seen':
        for (const seen of fact.sessionIds.map((id) => this.sessions.find(id))) {
          if (seen !== null) removeSeenFailures(seen, fact.upTo, fact.unseen);
        }
        return;
      case 'quarantine-removed':
        this.#subtractCounts(fact);
        return;
      case 'session-arranged':
        if (session !== null) session.arrangement = fact.arrangement;
        return;
      case 'wake-rule-set':
        if (session !== null) session.wakeRule = { when: fact.when };
        return;
      case 'state-due':
        if (session !== null) Object.assign(session, { isStateDue: true, usualSilenceMs: fact.usualSilenceMs });
        return;
      case 'task-undelivered':
        session?.undelivered.push(fact.position);
        return;
      case 'reply-overdue':
        session?.overdue.push(fact.messageId);
        return;
    }
    const agent = this.agents.announce(fact.agentId);
    switch (fact.kind) {
      case 'runner-connected':
        if (agent.connection === 'away' || agent.runnerId !== fact.runnerId) agent.connectedSince = this.#receivedAt;
        agent.connection = 'connected';
        agent.retiredAt = null;
        agent.runnerId = fact.runnerId;
        agent.lastSeenAt = this.#receivedAt;
        return;
      case 'runner-away':
        agent.connection = 'away';
        agent.connectedSince = this.#receivedAt;
        return;
      case 'level-requested':
        agent.logLevel = { ...agent.logLevel, desired: fact.desired };
        return;
      case 'agent-retired':
        agent.retiredAt = fact.retiredAt;
        return;
      case 'clock-moved':
        agent.lastSeenAt = fact.lastSeenAt;
        return;
      case 'failures-seen':
        agent.insightCount = fact.remaining.all;
        agent.otherFailureCount = fact.remaining.other;
    }
  }

  async finish(yielder: Yielder, nextPosition: () => number): Promise<ReadModelChanges> {
    this.#unassignedFailures.markIn((agentId) => this.sessions.openOf(agentId));
    const rows: SessionRows = {
      turns: [],
      removedTurns: [],
      moves: [],
      folds: [],
      seenMessages: [],
      startedAgentIds: [],
      replyChangedSessionIds: [],
      openings: [],
      derived: [],
      foldedAway: new Set(),
    };
    const projected: (SessionProjection & { session: SessionBatch })[] = [];
    for (const session of this.sessions.values()) {
      if (session.before !== null && !hasChanges(session) && !this.#isSeenDue(session)) continue;
      const { tasks, obligations, parts, position, aliasBySession } = this.#state;
      const of = <T>(rows: ReadonlyMap<string, T[]>) => rows.get(session.id) ?? [];
      const stored = {
        tasks: of(tasks),
        obligations: of(obligations),
        parts: of(parts),
        position,
        alias: aliasBySession.get(session.id) ?? null,
      };
      const { clockSkewMs = 0 } = this.agents.get(session.agentId);
      const projection = await projectSession(session, stored, rows, this.#receivedAt, clockSkewMs, yielder);
      projected.push({ session, ...projection });
    }
    await yielder.yieldIfDue();
    const obligations: BatchRows['obligations'] = [];
    for (const { session, obligations: changes } of projected) {
      if (changes.length > 0) {
        const agent = this.agents.get(session.agentId);
        agent.owedCount += openDelta(changes);
        agent.overdueCount += overdueDelta(changes);
      }
      for (const { after } of changes) obligations.push({ obligation: after, updatedPosition: nextPosition() });
    }
    await yielder.yieldIfDue();
    const tasks: BatchRows['tasks'] = [];
    for (const projection of projected) {
      await yielder.each(projection.tasks, ({ after }) => {
        tasks.push({ task: after, updatedPosition: nextPosition() });
      });
    }
    const sessions = await yielder.map(projected, ({ session, change, announces }): SessionChange => {
      const before = session.before?.summary.updatedPosition ?? '0';
      this.#countSession(session, change.summary);
      const updatedPosition = announces ? positionFromNumber(nextPosition()) : before;
      return { ...change, summary: { ...change.summary, updatedPosition } };
    });
    await yielder.yieldIfDue();
    const agents = this.agents.changes(nextPosition);
    await yielder.yieldIfDue();
    const inbox = new InboxLedger(this.#receivedAt, nextPosition);
    await yielder.each(projected, ({ before, after, obligations: replies, tasks: changes }) => {
      inbox.session(before, after);
      inbox.replies(replies);
      inbox.tasks(changes);
    });
    await yielder.each(agents, (agent) => {
      inbox.agent(this.#state.agents.get(agent.id), agent, this.#failures.get(agent.id));
    });
    inbox.mark(this.#marks);
    await yielder.yieldIfDue();
    const written = projected.filter(({ session }) => session.entries.length > 0);
    return {
      ...rows,
      startedAgentIds: [...new Set(rows.startedAgentIds)],
      obligations,
      tasks,
      sessions,
      agents,
      inbox: inbox.changes,
      reportingAgentIds: this.agents.reportingWhileAway(),
      seenAgentIds: this.agents.seenOnly(),
      writtenSessionIds: written.map(({ session }) => session.id),
    };
  }

  /** A session that started later or belongs to another agent never counted these records. */
  #subtractCounts({ agentId, counts }: AgentFact & { kind: 'quarantine-removed' }): void {
    const agent = this.agents.get(agentId);
    for (const [id, count] of counts) {
      agent.quarantinedCount -= count;
      const session = id === null ? null : this.sessions.find(id);
      if (session?.agentId === agentId) session.quarantined -= count;
    }
  }

  #countSession({ agentId, before: stored }: SessionBatch, after: SessionSummary): void {
    const before = stored?.summary;
    const brokenOff = Number(hasCrashed(after)) - Number(before !== undefined && hasCrashed(before));
    const running = after.runningTaskCount - (before?.runningTaskCount ?? 0);
    const [listedBefore, listed] = [before && countedStateOf(before), countedStateOf(after)];
    if (before?.state === after.state && listedBefore === listed && brokenOff === 0 && running === 0) return;
    const agent = this.agents.get(agentId);
    agent.brokenOffCount += brokenOff;
    agent.runningTaskCount += running;
    if (before === undefined) agent.sessionCount += 1;
    agent.sessionStates = moved(agent.sessionStates, before?.state, after.state);
    agent.listedStates = moved(agent.listedStates, listedBefore, listed);
  }

  /** Stores the runner's presence about once a second, and immediately if it was missed before. */
  #isSeenDue({ isActive, before }: SessionBatch): boolean {
    return isActive && (before?.isAway === true || Math.abs(this.#receivedAt - (before?.seenAt ?? 0)) >= SEEN_STORE_MS);
  }
}

/** Counts after one item moved from one state to another. */
function moved<State extends string>(counts: Record<State, number>, from: State | undefined, to: State) {
  if (from === to) return counts;
  const next = { ...counts };
  if (from !== undefined) next[from] -= 1;
  next[to] += 1;
  return next;
}

function hasChanges(session: SessionBatch): boolean {
  return (
    session.entries.length > 0 ||
    session.statuses.length > 0 ||
    session.failures.all !== 0 ||
    session.quarantined !== 0 ||
    session.isStateDue ||
    session.overdue.length > 0 ||
    session.undelivered.length > 0 ||
    session.arrangement !== null ||
    session.wakeRule !== null
  );
}
