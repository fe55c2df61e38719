import type { Row } from '@libsql/client';
import type { AgentSummary, Obligation, ProducerSummary, SessionSummary, Task } from '@/lib/protocol/read-models';
import { columnText } from './column-text';

/**
 * The rows of the fleet's tables, in and out: what queries filter and sort by has a column, the rest is JSON in `body`.
 */

/** What bodies lack that were written before there were commands, obligations, insights and asked-for log levels. */
const AGENT_BEFORE = {
  owedCount: 0,
  parkedCount: 0,
  insightCount: 0,
  otherFailureCount: 0,
  logLevel: { level: null, since: null, by: null, until: null, base: null, desired: null },
  connection: 'away',
  connectedSince: null,
  runnerId: null,
};
const SESSION_BEFORE = { owedCount: 0, insightCount: 0, otherFailureCount: 0, away: null };

export function agentFromRow(row: Row): AgentSummary {
  return {
    ...AGENT_BEFORE,
    ...JSON.parse(String(row.body)),
    id: String(row.id),
    lastSeenAt: Number(row.last_seen_at),
    updatedPosition: String(row.updated_position),
  };
}

export function agentToRow({ id, lastSeenAt, updatedPosition, ...body }: AgentSummary) {
  return { id, lastSeenAt, updatedPosition: Number(updatedPosition), body };
}

export function sessionFromRow(row: Row): SessionSummary {
  return {
    ...SESSION_BEFORE,
    lastHeardAt: Number(row.last_event_at),
    ...JSON.parse(String(row.body)),
    id: String(row.id),
    agentId: String(row.agent_id),
    state: String(row.state),
    lastEventAt: Number(row.last_event_at),
    updatedPosition: String(row.updated_position),
  };
}

export function sessionToRow({ id, agentId, state, lastEventAt, updatedPosition, ...body }: SessionSummary) {
  return { id, agentId, state, lastEventAt, updatedPosition: Number(updatedPosition), body };
}

/** What bodies of tasks lack that were written before one session could tell of another's. */
const TASK_BEFORE = { reportedBy: null, assignedBy: null, toldElsewhere: null };

export function taskFromRow(row: Row): Task {
  return {
    ...TASK_BEFORE,
    ...JSON.parse(String(row.body)),
    agentId: String(row.agent_id),
    sessionId: String(row.session_id),
    status: String(row.status),
    position: String(row.position),
  };
}

/** The ids are in the body too, as they were sent: the columns hold them as SQLite can. */
export function taskToRow(task: Task, updatedPosition: number) {
  const { sessionId, agentId, status, position, ...body } = task;
  return {
    sessionId,
    position: Number(position),
    id: columnText(task.id),
    runId: task.runId === null ? null : columnText(task.runId),
    agentId,
    status,
    updatedPosition,
    body,
  };
}

export function obligationFromRow(row: Row): Obligation {
  return {
    ...JSON.parse(String(row.body)),
    sessionId: String(row.session_id),
    agentId: String(row.agent_id),
    state: String(row.state),
    position: String(row.position),
  };
}

/** The message's id is in the body too, as it was sent. */
export function obligationToRow({ sessionId, agentId, state, position, ...body }: Obligation, updatedPosition: number) {
  return {
    sessionId,
    messageId: columnText(body.messageId),
    agentId,
    state,
    position: Number(position),
    updatedPosition,
    body,
  };
}

export function producerFromRow(row: Row): ProducerSummary {
  return {
    id: String(row.id),
    epoch: Number(row.epoch),
    agentId: row.agent_id === null ? null : String(row.agent_id),
    lastSeq: Number(row.last_seq),
    accepted: Number(row.accepted),
    duplicates: Number(row.duplicates),
    gaps: Number(row.gaps),
    rejected: Number(row.rejected),
    lost: Number(row.lost),
    clockSkewMs: row.clock_skew_ms === null ? null : Number(row.clock_skew_ms),
    lastSeenAt: Number(row.last_seen_at),
  };
}
