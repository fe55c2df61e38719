import type { RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import {
  ACTIVITY_KEPT_MINUTES,
  MINUTE_MS,
  PROGRESS_MS,
  REQUEST_GRACE_MS,
  UNDELIVERED_MS,
} from '@interlude/protocol/limits';
import type { InStatement, Row } from '@libsql/client';
import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { obligations, sessions, tasks } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { numberSetting } from '@/lib/server/access/access-settings';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { AgentFact, EventFact } from '@/lib/server/ingest/facts';
import { type AnswerableRequest, storedFold } from '@/lib/server/ingest/project-session';

/**
 * Rows that time alone changes: session states, pending replies, undelivered results, requests, old activity. Each kind
 * has a query for its due rows, and a function that settles a batch and returns its size, 0 once no row is due.
 *
 * Ordering: changes that people see go through the session's log, so transcript, lists and clients agree.
 * Failure: the due time is in the row, so every instance decides alike, also after a restart or with new settings.
 */

/** Maximum sessions per transaction. */
const MAX_STATES = 100;

/**
 * Sessions whose state may have changed, because a report of work has expired, or a sent message has waited for a
 * minute.
 */
export function dueStates(now: number): DueRows {
  return { table: 'sessions', key: 'id', where: 'state_due_at <= ?1', args: [now], order: 'state_due_at' };
}

const KIND = `(SELECT body->>'$.kind' FROM agents WHERE id = sessions.agent_id)`;

export async function resolveDueStates(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const columns = `id, agent_id, iif(state = 'working' AND body->>'$.lastHeardAt' <= ${now - PROGRESS_MS}, ${KIND}, NULL) AS silent_kind`;
  const { rows } = await transaction.execute(selectDue(dueStates(now), choice, columns, MAX_STATES));
  const usual = new Map<string, number>();
  for (const { silent_kind } of rows) {
    const kind = silent_kind === null ? null : String(silent_kind);
    if (kind !== null && !usual.has(kind)) usual.set(kind, await usualSilence(transaction, kind, now));
  }
  const facts = rows.map((row) => ({
    kind: 'state-due' as const,
    agentId: String(row.agent_id),
    sessionId: String(row.id),
    usualSilenceMs: usual.get(String(row.silent_kind)) ?? 0,
  }));
  await appendFacts(transaction, now, facts);
  return rows.length;
}

const WEEK_MS = 7 * 24 * 3_600_000;
/** Minimum gap between two events of a turn; shorter ones don't count. */
const LEAST_GAP_MS = 1_000;
/** Sample size: the newest sessions of the kind, and the newest events of each. */
const SAMPLED_SESSIONS = 12;
const SAMPLED_EVENTS = 250;
/** Minimum number of gaps for a meaningful 99th percentile. */
const LEAST_GAPS = 100;

const NEWEST_EVENTS = `SELECT turn_id, received_at FROM events WHERE session_id = ? AND turn_id IS NOT NULL
  AND turn_id NOT LIKE 'none:%' AND turn_id NOT LIKE 'task:%' AND received_at >= ? ORDER BY position DESC LIMIT ${SAMPLED_EVENTS}`;

/** The 99th percentile of a kind of agent's gaps within turns, in milliseconds over seven days; 0 if there are few. */
async function usualSilence(transaction: WriteTransaction, kind: string, now: number): Promise<number> {
  const { rows } = await transaction.execute({
    sql: `SELECT s.id FROM agents AS a CROSS JOIN sessions AS s ON s.agent_id = a.id
          WHERE a.body->>'$.kind' = ?1 AND a.last_seen_at >= ?2 AND s.last_event_at >= ?2
          ORDER BY s.last_event_at DESC LIMIT ${SAMPLED_SESSIONS}`,
    args: [kind, now - WEEK_MS],
  });
  if (rows.length === 0) return 0;
  const sampled = await transaction.batch(
    rows.map(({ id }) => ({ sql: NEWEST_EVENTS, args: [String(id), now - WEEK_MS] })),
  );
  const gaps: number[] = [];
  for (const { rows: events } of sampled) {
    for (const [index, { turn_id, received_at }] of events.entries()) {
      const later = events[index - 1];
      const ms = later?.turn_id === turn_id ? Number(later?.received_at) - Number(received_at) : 0;
      if (ms >= LEAST_GAP_MS) gaps.push(ms);
    }
  }
  if (gaps.length < LEAST_GAPS) return 0;
  gaps.sort((a, b) => a - b);
  return gaps[Math.floor(gaps.length * 0.99)] ?? 0;
}

const DEFAULT_OVERDUE_MINUTES = 15;
export const REPLY_OVERDUE_MS = DEFAULT_OVERDUE_MINUTES * MINUTE_MS;
/** A year, so that every computed time is a safe integer. */
const MAX_MINUTES = 525_600;
const MAX_SECONDS = MAX_MINUTES * 60;

/** Milliseconds until a pending reply is overdue, from `INTERLUDE_REPLY_OVERDUE_MINUTES`. */
export function replyOverdueMs(env: Record<string, string | undefined>): number {
  const minutes = numberSetting(env, 'INTERLUDE_REPLY_OVERDUE_MINUTES', {
    byDefault: DEFAULT_OVERDUE_MINUTES,
    max: MAX_MINUTES,
    otherwise: `replies are overdue after ${DEFAULT_OVERDUE_MINUTES} minutes`,
  });
  return minutes * MINUTE_MS;
}

const OBLIGATION = shapeOf(obligations, 'sessionId', 'agentId', 'body');

interface ReplyLimit {
  now: number;
  overdueMs: number;
}

/** Replies pending for too long. Ingest clears `is_judged` when a session becomes able or unable to reply. */
export function overdueReplies({ now, overdueMs }: ReplyLimit): DueRows {
  return {
    table: 'obligations',
    key: 'rowid',
    where: `state = 'owed' AND is_judged = 0 AND owed_since <= ?1`,
    args: [now - overdueMs],
    order: 'owed_since',
  };
}

/** An agent that waits for its operator, has failed or has exited can't reply, so its replies are not overdue. */
export function markOverdueReplies(
  transaction: WriteTransaction,
  limit: ReplyLimit,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = selectDue(overdueReplies(limit), choice, `rowid AS number, ${OBLIGATION.columns()}`);
  const factOf = (row: Row) => {
    const { agentId, sessionId, body } = OBLIGATION.read(row);
    return { kind: 'reply-overdue' as const, agentId, sessionId, messageId: body.messageId };
  };
  // Marks all rows as judged, even if nothing changed.
  return markDue(transaction, limit.now, due, factOf, 'UPDATE obligations SET is_judged = 1');
}

/** Milliseconds a task's result may wait for a turn, from `INTERLUDE_UNDELIVERED_SECONDS`. */
export function undeliveredMs(env: Record<string, string | undefined>): number {
  const byDefault = UNDELIVERED_MS / 1_000;
  const seconds = numberSetting(env, 'INTERLUDE_UNDELIVERED_SECONDS', {
    byDefault,
    max: MAX_SECONDS,
    otherwise: `results count as not delivered after ${byDefault} seconds`,
  });
  return seconds * 1_000;
}

const TASK = shapeOf(tasks, 'sessionId', 'agentId', 'id', 'runId', 'position', 'body');

/**
 * The session must be idle, because an open or expected turn may still pick up the result. A session lost in the middle
 * of a turn has its own inbox item.
 */
const IS_IDLE = `(SELECT iif(state = 'unknown', body->>'$.evidence.last', state) NOT IN ('working', 'needs-input', 'starting')
  FROM sessions WHERE id = tasks.session_id)`;

interface ResultLimit {
  now: number;
  waitsMs: number;
}

/** Results of ended tasks that no turn has picked up in time. */
export function undeliveredResults({ now, waitsMs }: ResultLimit): DueRows {
  return {
    table: 'tasks',
    key: 'rowid',
    where: `unanswered_since <= ?1 AND ${IS_IDLE}`,
    args: [now - waitsMs],
    order: 'unanswered_since',
  };
}

export function markUndelivered(
  transaction: WriteTransaction,
  limit: ResultLimit,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = selectDue(undeliveredResults(limit), choice, `rowid AS number, ${TASK.columns()}`);
  const factOf = (row: Row) => {
    const { agentId, sessionId, runId, position, body } = TASK.read(row);
    return { kind: 'task-undelivered' as const, agentId, sessionId, id: body.id, runId, position: String(position) };
  };
  return markDue(transaction, limit.now, due, factOf, 'UPDATE tasks SET unanswered_since = NULL');
}

/** Appends a fact for each due row, then updates the rows. */
async function markDue(
  transaction: WriteTransaction,
  now: number,
  due: InStatement,
  factOf: (row: Row) => AgentFact,
  update: string,
): Promise<number> {
  const { rows } = await transaction.execute(due);
  await appendFacts(transaction, now, rows.map(factOf));
  await transaction.execute({
    sql: `${update} WHERE rowid IN (SELECT value FROM json_each(?))`,
    args: [JSON.stringify(rows.map(({ number }) => Number(number)))],
  });
  return rows.length;
}

const SESSION = shapeOf(sessions, 'id', 'agentId', 'memory');
/** Maximum sessions, and maximum requests, per transaction. */
const MAX_SESSIONS = 50;
const MAX_REQUESTS = 5_000;

/** Sessions with an expired request. */
export function expiredRequests(now: number): DueRows {
  return { table: 'sessions', key: 'id', where: 'answer_by <= ?1', args: [now - REQUEST_GRACE_MS] };
}

/**
 * Ends expired requests if the agent did not. An outcome that the agent reports later in that turn replaces the expiry.
 */
export async function expireRequests(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const hasExpired = ({ answerBy }: AnswerableRequest) => answerBy !== undefined && answerBy <= now - REQUEST_GRACE_MS;
  return (await resolveRequests(transaction, now, expiredRequests(now), choice, 'expired', hasExpired)).found;
}

/** Sessions with an open request that have been silent for too long. */
export function abandonedSessions(now: number): DueRows {
  return { table: 'sessions', key: 'id', where: 'gives_up_at <= ?1', args: [now] };
}

/**
 * Ends the requests of sessions whose runner has not come back. A runner that returns opens them again, so this needs
 * no trusted clock.
 */
export async function abandonRequests(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = abandonedSessions(now);
  const { found, sessionIds } = await resolveRequests(transaction, now, due, choice, 'unknown', () => true);
  await transaction.execute({
    sql: 'UPDATE sessions SET gives_up_at = NULL WHERE id IN (SELECT value FROM json_each(?))',
    args: [JSON.stringify(sessionIds)],
  });
  return found;
}

/** Resolves due requests session by session, up to a limit that never splits the first session's. */
async function resolveRequests(
  transaction: WriteTransaction,
  now: number,
  due: DueRows,
  choice: RowChoice,
  outcome: RequestResolvedValue['outcome'],
  isDue: (request: AnswerableRequest) => boolean,
): Promise<{ found: number; sessionIds: string[] }> {
  const { rows } = await transaction.execute(selectDue(due, choice, SESSION.columns(), MAX_SESSIONS));
  const events: EventFact[] = [];
  const sessionIds: string[] = [];
  for (const { id: sessionId, agentId, memory } of rows.map(SESSION.read)) {
    const requests = (storedFold(memory).pendingRequests ?? []).filter(isDue);
    if (sessionIds.length > 0 && events.length + requests.length > MAX_REQUESTS) break;
    sessionIds.push(sessionId);
    for (const { id } of requests) {
      const value = { request_id: id, outcome };
      events.push({ agentId, sessionId, event: { type: 'CUSTOM', name: CUSTOM.requestResolved, value } });
    }
  }
  await appendFacts(transaction, now, events);
  return { found: rows.length, sessionIds };
}

/** Rows per transaction. There is one row per agent and minute. */
const MAX_REMOVED = 500;

/** Activity too old for any page. */
export function oldActivity(now: number): DueRows {
  const oldest = Math.floor(now / MINUTE_MS) - ACTIVITY_KEPT_MINUTES;
  return { table: 'activity', key: 'rowid', where: 'minute < ?1', args: [oldest], order: 'minute' };
}

export async function removeActivity(transaction: WriteTransaction, now: number): Promise<number> {
  const { where, args } = oldActivity(now);
  const { rows } = await transaction.execute({
    sql: `DELETE FROM activity WHERE rowid IN (SELECT rowid FROM activity WHERE ${where} LIMIT ${MAX_REMOVED}) RETURNING 1`,
    args: [...args],
  });
  return rows.length;
}
