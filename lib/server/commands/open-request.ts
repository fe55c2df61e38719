import type { RequestOption } from '@interlude/protocol/ag-ui';
import { answerBy } from '@interlude/protocol/answer-by';
import { fieldsOf } from '@interlude/protocol/fields';
import { requestOptions } from '@interlude/protocol/request-options';
import { events } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { AnswerableRequest } from '@/lib/server/ingest/project-session';
import type { WritableSession } from './writable-session';

const TOLD = shapeOf(events, 'position', 'name', 'payload', 'occurredAt', 'receivedAt');

/**
 * A request as it is open now: from the session's memory or, if it has more open requests than it remembers, from its
 * events, where what was asked and answered under an id has an index.
 *
 * @returns `resolved` if it was asked and is no longer open; null if it never was
 */
export async function openRequest(
  transaction: WriteTransaction,
  session: WritableSession,
  requestId: string,
): Promise<AnswerableRequest | 'resolved' | null> {
  const remembered = session.pendingRequests.find((request) => request.id === requestId);
  if (remembered !== undefined) return remembered;
  const last = await lastTold(transaction, session, requestId);
  if (last === undefined) return null;
  if (!session.hasMorePending || last.name !== 'request:opened') return 'resolved';
  return (await isCancelled(transaction, session, last.position)) ? 'resolved' : toldIn(requestId, last);
}

/** The answers that a request which is open offers, as it was told last. */
export async function offeredOptions(
  transaction: WriteTransaction,
  session: WritableSession,
  requestId: string,
): Promise<RequestOption[]> {
  const last = await lastTold(transaction, session, requestId);
  return requestOptions(fieldsOf(last?.payload.value).options);
}

/** The last that was told of it: that it was opened, or resolved. */
async function lastTold(transaction: WriteTransaction, session: WritableSession, requestId: string) {
  return TOLD.first(
    await transaction.execute({
      sql: `SELECT ${TOLD.columns()} FROM events
            WHERE session_id = ? AND type = 'CUSTOM' AND entity_id = ? AND name IN ('request:opened', 'request:resolved')
            ORDER BY position DESC LIMIT 1`,
      args: [session.id, columnText(requestId)],
    }),
  );
}

type Told = ReturnType<typeof TOLD.read>;

function toldIn(id: string, { payload, occurredAt, receivedAt }: Told): AnswerableRequest {
  // the server itself wrote digest and position into it
  const value = payload.value as {
    kind?: unknown;
    expires_at?: unknown;
    expiresAt?: unknown;
    digest: string;
    opened_position: string;
  };
  const until = answerBy(value.expires_at ?? value.expiresAt, { occurredAt, receivedAt });
  return {
    id,
    kind: value.kind === 'question' ? 'question' : 'permission',
    digest: value.digest,
    openedPosition: value.opened_position,
    ...(until === null ? {} : { answerBy: until }),
  };
}

/**
 * Whether the agent went on without an answer since then: its process ended, or a turn broke off that was open then or
 * began later.
 */
async function isCancelled(transaction: WriteTransaction, session: WritableSession, position: number) {
  const broken = "kind <> 'none' AND state IN ('failed', 'interrupted')";
  const { rows } = await transaction.execute({
    sql: `WITH around AS (
            SELECT id, position, kind, state FROM turns
            WHERE session_id = ?1 AND kind <> 'none' AND position <= ?2 ORDER BY position DESC LIMIT 1
          )
          SELECT EXISTS (
              SELECT 1 FROM events WHERE session_id = ?1 AND position > ?2
                AND type = 'CUSTOM' AND name = 'session:ended'
            ) OR EXISTS (
              SELECT 1 FROM turns WHERE session_id = ?1 AND position > ?2 AND ${broken}
            ) OR EXISTS (
              SELECT 1 FROM around WHERE ${broken} AND NOT EXISTS (
                SELECT 1 FROM events AS e WHERE e.session_id = ?1 AND e.position > around.position AND e.position < ?2
                  AND (e.turn_id = around.id AND e.type IN ('RUN_FINISHED', 'RUN_ERROR')
                    OR e.type = 'CUSTOM' AND e.name = 'session:ended')
              )
            ) AS is_cancelled`,
    args: [session.id, position],
  });
  return Number(rows[0]?.is_cancelled) === 1;
}
