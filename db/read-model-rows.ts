import { reporterOf } from '@interlude/protocol/agent-status';
import type { InboxItem } from '@interlude/protocol/inbox';
import { agentText, sessionText } from '@interlude/protocol/list-search';
import type { AgentSummary, Obligation, ProducerSummary, SessionSummary, Task } from '@interlude/protocol/read-models';
import { groupOf, listedStateOf } from '@interlude/protocol/session-predicates';
import type { Row } from '@libsql/client';
import {
  AGENT_COLUMNS,
  agents,
  inbox,
  OBLIGATION_COLUMNS,
  obligations,
  producers,
  SESSION_COLUMNS,
  sessions,
  TASK_COLUMNS,
  tasks,
} from './schema';
import { shapeOf } from './table-rows';

/** Rows of the read models. Values that queries filter or sort by have columns; other values are JSON in `body`. */
export const AGENT_ROW = shapeOf(agents, ...AGENT_COLUMNS, 'body');
export const SESSION_ROW = shapeOf(sessions, ...SESSION_COLUMNS, 'body');
export const TASK_ROW = shapeOf(tasks, ...TASK_COLUMNS, 'body');
export const OBLIGATION_ROW = shapeOf(obligations, ...OBLIGATION_COLUMNS, 'body');
const INBOX_ROW = shapeOf(
  inbox,
  'id',
  'kind',
  'agentId',
  'sessionId',
  'since',
  'seenAt',
  'snoozedUntil',
  'claim',
  'doneAt',
  'body',
  'openedPosition',
  'updatedPosition',
);
const PRODUCER_ROW = shapeOf(producers);

export function agentFromRow(row: Row): AgentSummary {
  const { body, updatedPosition, ...columns } = AGENT_ROW.read(row);
  return { ...body, ...columns, updatedPosition: String(updatedPosition) };
}

export function agentToRow({ id, lastSeenAt, updatedPosition, ...body }: AgentSummary) {
  const { runner, everyMs } = reporterOf(body.status);
  const reported = { reportedBy: runner?.id ?? null, reportsEveryMs: everyMs ?? null, isSilent: false };
  const { requestedAt = null, expiresAt = null } = body.logLevel.desired ?? {};
  const level = { levelRequestedAt: requestedAt, levelExpiresAt: expiresAt };
  const words = agentText({ id, kind: body.kind });
  const counted = { state: body.state, isRetired: body.retiredAt !== null };
  return { id, lastSeenAt, ...reported, ...level, ...counted, body, words, updatedPosition: Number(updatedPosition) };
}

export function sessionFromRow(row: Row): SessionSummary {
  const { body, answerBy, updatedPosition, ...columns } = SESSION_ROW.read(row);
  const expiry = answerBy === null ? {} : { answerBy };
  return { ...body, ...columns, ...expiry, updatedPosition: String(updatedPosition) };
}

export function sessionToRow(summary: SessionSummary) {
  const { id, agentId, state, lastEventAt, stateDueAt, answerBy = null, updatedPosition, ...rest } = summary;
  const { insightCount, otherFailureCount, wakeRule, ...body } = rest;
  const listed = listedStateOf(summary);
  const listedAs = listed === state ? null : listed;
  const group = groupOf(summary);
  const groupedAs = group === listed ? null : group;
  const columns = {
    ...{ id, agentId, state, listedAs, groupedAs, lastEventAt, stateDueAt, answerBy },
    ...{ insightCount, otherFailureCount, wakeRule },
  };
  return { ...columns, body, words: sessionText(summary), updatedPosition: Number(updatedPosition) };
}

export function taskFromRow(row: Row): Task {
  const { body, position, ...columns } = TASK_ROW.read(row);
  return { ...body, ...columns, position: String(position) };
}

export function taskToRow(task: Task, updatedPosition: number) {
  const { sessionId, agentId, status, startedAt, endedAt, position, ...body } = task;
  const { id, runId, presumed = null, unansweredSince = null } = task;
  const awaited = { unansweredSince: task.isUndelivered ? null : unansweredSince };
  const columns = { sessionId, agentId, status, startedAt, endedAt, id, runId, presumed, ...awaited };
  return { ...columns, body, position: Number(position), updatedPosition };
}

export function obligationFromRow(row: Row): Obligation {
  const { body, position, ...columns } = OBLIGATION_ROW.read(row);
  return { ...body, ...columns, position: String(position) };
}

export function obligationToRow(obligation: Obligation, updatedPosition: number) {
  const { sessionId, agentId, state, owedSince, isOverdue, position, ...body } = obligation;
  const columns = { sessionId, agentId, state, owedSince, isOverdue, isJudged: isOverdue, messageId: body.messageId };
  return { ...columns, body, position: Number(position), updatedPosition };
}

/** Columns of an inbox item, with the session's current title and name. @param as alias of the table */
export function inboxColumns(as: string): string {
  const session = `SELECT json_array(body->>'$.title', body->>'$.arrangement.name') FROM sessions`;
  return `${INBOX_ROW.columns(as)}, (${session} WHERE sessions.id = ${as}.session_id) AS session`;
}

export function inboxItemFromRow(row: Row): InboxItem {
  const { body, openedPosition, updatedPosition, ...columns } = INBOX_ROW.read(row);
  const positions = { openedPosition: String(openedPosition), updatedPosition: String(updatedPosition) };
  const [title = null, name = null] = row.session == null ? [] : JSON.parse(String(row.session));
  return { ...columns, session: row.session == null ? null : { title, name }, ...body, ...positions };
}

export function producerFromRow(row: Row): ProducerSummary {
  return PRODUCER_ROW.read(row);
}
