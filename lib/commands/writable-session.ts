import { columnText } from '@/db/column-text';
import type { WriteTransaction } from '@/db/write-queue';
import { AppError } from '@/lib/protocol/errors';
import type { Position } from '@/lib/protocol/position';

export interface WritableSession {
  id: string;
  agentId: string;
  openTurnId: string | null;
  pendingRequests: PendingRequest[];
  /** How many more are open, which are only counted. */
  morePending: number;
}

/** `digest` and `openedPosition` are absent where a request was opened before servers computed them. */
export interface PendingRequest {
  id: string;
  kind?: 'permission' | 'question';
  digest?: string;
  openedPosition?: Position;
  answerBy?: number;
}

/**
 * The session something is asked of.
 * @throws AppError `not_found`; `conflict` when its agent has ended and no runner has come since
 */
export async function writableSession(transaction: WriteTransaction, sessionId: string): Promise<WritableSession> {
  const { rows } = await transaction.execute({
    sql: `SELECT s.id, s.agent_id, s.body->'$.openTurnId' AS open_turn_id, s.memory->'$.fold.ended' AS ended, s.memory->'$.fold.pendingRequests' AS requests,
            s.memory->>'$.fold.morePending' AS more_pending,
            iif(a.body->>'$.connection' = 'connected', a.body->>'$.connectedSince', NULL) AS connected_since
          FROM sessions AS s LEFT JOIN agents AS a ON a.id = s.agent_id WHERE s.id = ?`,
    args: [columnText(sessionId)],
  });
  const [row] = rows;
  if (row === undefined) {
    throw new AppError(
      'not_found',
      `There is no session ${JSON.stringify(sessionId)}. GET /api/v1/sessions lists them.`,
    );
  }
  const ended =
    row.ended === null ? null : (JSON.parse(String(row.ended)) as { reason: string | null; at?: number } | null);
  // A runner that came after the end may have taken the session up again; if it has not, it says so.
  const isTakenUp =
    row.connected_since !== null && Number(row.connected_since) >= (ended?.at ?? Number.POSITIVE_INFINITY);
  if (ended !== null && !isTakenUp) {
    const why = ended.reason === null ? '' : ` (${ended.reason})`;
    throw new AppError(
      'conflict',
      `The agent of this session has ended${why}, so nobody can act on this. Start its runner again with --resume, or use another session.`,
      { details: { reason: 'session_ended' } },
    );
  }
  return {
    id: String(row.id),
    agentId: String(row.agent_id),
    openTurnId: row.open_turn_id === null ? null : (JSON.parse(String(row.open_turn_id)) as string | null),
    pendingRequests: row.requests === null ? [] : JSON.parse(String(row.requests)),
    morePending: Number(row.more_pending ?? 0),
  };
}
