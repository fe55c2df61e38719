import { CUSTOM, type RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { REQUEST_GRACE_MS } from '@interlude/protocol/limits';
import type { Row } from '@libsql/client';
import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { sessions } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { EventFact } from '@/lib/server/ingest/facts';
import { type AnswerableRequest, storedFold } from '@/lib/server/ingest/project-session';

/**
 * Ends requests whose time is over and whose agent says nothing, and those whose runner does not come back: their sessions
 * would wait for ever.
 *
 * Ordering: told in the sessions' own logs, so that transcript, session list and every client say the same.
 * Failure: should the agent tell later in that turn how one ended, that is what is shown.
 */

const WAITING = shapeOf(sessions, 'id', 'agentId', 'memory');

/** Most sessions of one transaction, and most requests. */
const MAX_TOLD = 50;
const MAX_ENDED = 5_000;

/** The sessions with a request that has expired. */
export function overdueSessions(now: number): DueRows {
  return { table: 'sessions', key: 'id', where: 'answer_by <= ?1', args: [now - REQUEST_GRACE_MS] };
}

/** @returns how many sessions there was something to tell; call again until it is 0 */
export async function expireRequests(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { rows } = await transaction.execute(selectDue(overdueSessions(now), choice, WAITING.columns(), MAX_TOLD));
  const isOver = ({ answerBy }: AnswerableRequest) => answerBy !== undefined && answerBy <= now - REQUEST_GRACE_MS;
  const { events } = ends(rows, 'expired', isOver);
  await appendFacts(transaction, now, events);
  return rows.length;
}

/** The sessions that have a request, and of which nothing has been heard for too long. */
export function forsakenSessions(now: number): DueRows {
  return { table: 'sessions', key: 'id', where: 'gives_up_at <= ?1', args: [now] };
}

/**
 * Nobody waits for an answer any more that nobody would take. Should the runner come back and tell a request again, it is
 * open again: so the clock need not be one that can be trusted.
 *
 * @returns how many sessions there was something to tell; call again until it is 0
 */
export async function giveUpRequests(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { rows } = await transaction.execute(selectDue(forsakenSessions(now), choice, WAITING.columns(), MAX_TOLD));
  const { events, sessionIds } = ends(rows, 'unknown', () => true);
  await appendFacts(transaction, now, events);
  await transaction.execute({
    sql: 'UPDATE sessions SET gives_up_at = NULL WHERE id IN (SELECT value FROM json_each(?))',
    args: [JSON.stringify(sessionIds)],
  });
  return rows.length;
}

/** @returns the ends of the requests of some of them, and of which: of what is beyond a transaction, the next has the rest */
function ends(
  rows: readonly Row[],
  outcome: RequestResolvedValue['outcome'],
  isMeant: (request: AnswerableRequest) => boolean,
): { events: EventFact[]; sessionIds: string[] } {
  const events: EventFact[] = [];
  const sessionIds: string[] = [];
  for (const row of rows) {
    const { id: sessionId, agentId, memory } = WAITING.read(row);
    const requests = (storedFold(memory).pendingRequests ?? []).filter(isMeant);
    if (sessionIds.length > 0 && events.length + requests.length > MAX_ENDED) break;
    sessionIds.push(sessionId);
    for (const { id } of requests) {
      const value = { request_id: id, outcome };
      events.push({ agentId, sessionId, event: { type: 'CUSTOM', name: CUSTOM.requestResolved, value } });
    }
  }
  return { events, sessionIds };
}
