import { CUSTOM } from '@interlude/protocol/ag-ui';
import type { SessionState } from '@interlude/protocol/agent-state';
import type { EventRecord, IngestRecord } from '@interlude/protocol/envelope';
import { customName, customValue, pickNumber } from '@interlude/protocol/event-fields';
import type { InboxMarks } from '@interlude/protocol/inbox';
import { positionFromNumber } from '@interlude/protocol/position';
import { overdueDifference, owedDifference } from '@interlude/protocol/projections/session-summary';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { hasBrokenOff } from '@interlude/protocol/session-standing';
import { isOfHook } from '@interlude/protocol/signals';
import type { Yielder } from '@/db/yield-to-loop';
import type { BatchRows, InsightRow, SessionChange } from '@/lib/server/event-log/batch-rows';
import type { BatchState } from '@/lib/server/event-log/read-batch-state';
import { AgentLedger } from './agent-ledger';
import type { SessionBatch } from './batch-sessions';
import { addFailure, BatchSessions, removeSeenFailures, UnassignedFailures } from './batch-sessions';
import type { AgentFact } from './facts';
import { InboxLedger } from './inbox-ledger';
import { projectSession, type SessionProjection, type SessionRows } from './project-session';

const SEEN_NOTE_MS = 1_000;

/** The rows of the fleet that a batch changes, and what its events became on the way. */
export type ReadModelChanges = SessionRows &
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
 * The one place where rows of the fleet are derived: from a batch its sessions, with their turns, tasks and obligations,
 * its agents and all their counts, which the event log then writes. Producers tell events and failures; what the server
 * itself knows comes as a fact.
 *
 * Ordering: every changed obligation, task, session, agent and inbox item takes a position of its own, in this order.
 */
export class ReadModelWriter {
  readonly sessions: BatchSessions;
  readonly agents: AgentLedger;
  readonly #state: BatchState;
  readonly #receivedAt: number;
  readonly #failedAround = new UnassignedFailures();
  /** The newest of each agent. */
  readonly #failures = new Map<string, InsightRow>();
  readonly #marks = new Map<string, InboxMarks>();

  /** @param isSignOfLife whether the agents themselves sent the batch */
  constructor(state: BatchState, receivedAt: number, isSignOfLife: boolean) {
    this.#state = state;
    this.#receivedAt = receivedAt;
    this.sessions = new BatchSessions(state);
    this.agents = new AgentLedger(state.agents, receivedAt, isSignOfLife);
  }

  /** The record's session, which belongs to its agent from now on if it belonged to nobody. */
  claim(id: string, { agentId, occurredAt }: IngestRecord): SessionBatch {
    return this.sessions.claim(id, agentId, occurredAt, this.#failedAround.before(agentId));
  }

  /** A failure marks the session it names, if that is the agent's own; else each of its sessions that is not done. */
  addFailure(row: InsightRow): void {
    const agent = this.agents.get(row.agentId);
    agent.insightCount += 1;
    this.#failures.set(row.agentId, row);
    if (!isOfHook(row)) agent.otherFailureCount += 1;
    if (row.sessionId === null) {
      this.#failedAround.note(row);
      return;
    }
    const named = this.sessions.find(row.sessionId);
    if (named?.agentId === row.agentId) addFailure(named, row);
  }

  /** A person has settled parked records, so fewer are missing of the agent, and of the session that had told them. */
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

  /** Takes over what the server itself knows about an agent. */
  applyFact(fact: AgentFact): void {
    if (fact.kind === 'inbox-marked') {
      for (const [id, marks] of fact.marks) this.#marks.set(id, marks);
      return;
    }
    if (fact.kind === 'marks-seen') {
      for (const session of fact.sessionIds.map((id) => this.sessions.find(id))) {
        if (session !== null) removeSeenFailures(session, fact.upTo, fact.unseen);
      }
      return;
    }
    if (fact.kind === 'quarantine-removed') {
      this.#uncount(fact);
      return;
    }
    if (fact.kind === 'session-arranged' || fact.kind === 'wake-rule-set') {
      const session = this.sessions.find(fact.sessionId);
      if (session === null) return;
      if (fact.kind === 'wake-rule-set') session.wakeRule = { when: fact.when };
      else session.arrangement = fact.arrangement;
      return;
    }
    if (fact.kind === 'state-due' || fact.kind === 'reply-overdue' || fact.kind === 'task-undelivered') {
      const session = this.sessions.find(fact.sessionId);
      if (session === null) return;
      if (fact.kind === 'state-due') {
        session.isStateDue = true;
        session.usualSilenceMs = fact.usualSilenceMs;
      } else if (fact.kind === 'task-undelivered') session.undelivered.push(fact.position);
      else session.overdue.push(fact.messageId);
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
      case 'level-asked':
        agent.logLevel = { ...agent.logLevel, desired: fact.desired };
        return;
      case 'agent-retired':
        agent.retiredAt = fact.retiredAt;
        return;
      case 'clock-moved':
        agent.lastSeenAt = fact.lastSeenAt;
        return;
      case 'failures-seen':
        agent.insightCount = fact.left.all;
        agent.otherFailureCount = fact.left.other;
    }
  }

  async finish(yielder: Yielder, nextPosition: () => number): Promise<ReadModelChanges> {
    this.#failedAround.markIn((agentId) => this.sessions.openOf(agentId));
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
      const {
        before,
        entries,
        failures,
        quarantined,
        statuses,
        isStateDue,
        overdue,
        undelivered,
        arrangement,
        wakeRule,
      } = session;
      const isTouched =
        entries.length > 0 ||
        statuses.length > 0 ||
        failures.all !== 0 ||
        quarantined !== 0 ||
        isStateDue ||
        overdue.length > 0 ||
        undelivered.length > 0 ||
        arrangement !== null ||
        wakeRule !== null;
      if (before !== null && !isTouched && !this.#isNews(session)) continue;
      const { tasks, obligations, said, position, aliasBySession } = this.#state;
      const of = <T>(rows: ReadonlyMap<string, T[]>) => rows.get(session.id) ?? [];
      const stored = {
        tasks: of(tasks),
        obligations: of(obligations),
        said: of(said),
        position,
        alias: aliasBySession.get(session.id) ?? null,
      };
      projected.push({ session, ...(await projectSession(session, stored, rows, this.#receivedAt, yielder)) });
    }
    await yielder.rest();
    const obligations: BatchRows['obligations'] = [];
    for (const { session, obligations: changes } of projected) {
      if (changes.length > 0) {
        const agent = this.agents.get(session.agentId);
        agent.owedCount += owedDifference(changes);
        agent.overdueCount += overdueDifference(changes);
      }
      for (const { after } of changes) obligations.push({ obligation: after, updatedPosition: nextPosition() });
    }
    await yielder.rest();
    const tasks: BatchRows['tasks'] = [];
    for (const projection of projected) {
      await yielder.each(projection.tasks, ({ after }) => {
        tasks.push({ task: after, updatedPosition: nextPosition() });
      });
    }
    const sessions = await yielder.map(projected, ({ session, change, announces }): SessionChange => {
      const before = session.before?.summary.updatedPosition ?? '0';
      this.#count(session.agentId, session.before?.summary.state, change.summary.state);
      this.#countBrokenOff(session.agentId, session.before?.summary, change.summary);
      this.#countTasks(session.agentId, session.before?.summary.runningTaskCount ?? 0, change.summary.runningTaskCount);
      const updatedPosition = announces ? positionFromNumber(nextPosition()) : before;
      return { ...change, summary: { ...change.summary, updatedPosition } };
    });
    await yielder.rest();
    const agents = this.agents.changes(nextPosition);
    await yielder.rest();
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
    await yielder.rest();
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

  /** A session that had not begun, or is another agent's, never counted them. */
  #uncount({ agentId, counts }: AgentFact & { kind: 'quarantine-removed' }): void {
    const agent = this.agents.get(agentId);
    for (const [id, count] of counts) {
      agent.quarantinedCount -= count;
      const session = id === null ? null : this.sessions.find(id);
      if (session?.agentId === agentId) session.quarantined -= count;
    }
  }

  /** @param from undefined of a session that is new */
  #count(agentId: string, from: SessionState | undefined, to: SessionState): void {
    if (from === to) return;
    const agent = this.agents.get(agentId);
    const { sessionStates } = agent;
    if (from === undefined) agent.sessionCount += 1;
    agent.sessionStates = {
      ...sessionStates,
      ...(from !== undefined && { [from]: sessionStates[from] - 1 }),
      [to]: sessionStates[to] + 1,
    };
  }

  #countBrokenOff(agentId: string, before: SessionSummary | undefined, after: SessionSummary): void {
    const difference = Number(hasBrokenOff(after)) - Number(before !== undefined && hasBrokenOff(before));
    if (difference !== 0) this.agents.get(agentId).brokenOffCount += difference;
  }

  #countTasks(agentId: string, from: number, to: number): void {
    if (from !== to) this.agents.get(agentId).runningTaskCount += to - from;
  }

  /** Whether to note that its runner is there: about once a second, and at once after it was missed. */
  #isNews({ isActive, before }: SessionBatch): boolean {
    return isActive && (before?.isAway === true || Math.abs(this.#receivedAt - (before?.seenAt ?? 0)) >= SEEN_NOTE_MS);
  }
}
