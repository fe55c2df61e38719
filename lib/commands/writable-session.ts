import { columnText } from '@/db/column-text';
import { agentFromRow } from '@/db/fleet-rows';
import { sessions } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/write-queue';
import { type AnswerableRequest, rememberedFold } from '@/lib/ingest/remembered-fold';
import { conflict, missing } from './refusals';

export interface WritableSession {
  id: string;
  agentId: string;
  openTurnId: string | null;
  pendingRequests: readonly AnswerableRequest[];
  /** How many more are open that are only counted. */
  morePending: number;
}

const SESSION = shapeOf(sessions, 'id', 'agentId', 'body', 'memory');

/**
 * The session something is asked of.
 * @throws AppError `not_found`; `conflict` when its agent has ended and no runner has come since
 */
export async function writableSession(transaction: WriteTransaction, sessionId: string): Promise<WritableSession> {
  const id = columnText(sessionId);
  const [found, agents] = await transaction.batch([
    { sql: `SELECT ${SESSION.columns()} FROM sessions WHERE id = ?`, args: [id] },
    { sql: 'SELECT * FROM agents WHERE id = (SELECT agent_id FROM sessions WHERE id = ?)', args: [id] },
  ]);
  const session = SESSION.first(found);
  if (session === undefined) throw missing('session', sessionId, 'GET /api/v1/sessions lists them.');
  const { pendingRequests = [], morePending = 0 } = rememberedFold(session.memory);
  const ended = session.body.observations.process;
  const agent = agents?.rows[0] && agentFromRow(agents.rows[0]);
  const connectedSince = agent?.connection === 'connected' ? agent.connectedSince : null;
  // A runner that came after the end may have resumed the session; if not, it says so.
  const isTakenUp = connectedSince !== null && connectedSince >= (ended?.observedAt ?? 0);
  if (ended !== undefined && !isTakenUp) {
    const why = ended.value.reason === null ? '' : ` (${ended.value.reason})`;
    throw conflict(
      'session_ended',
      `The agent of this session has ended${why}, so nobody can act on this. Start its runner again with --resume, or use another session.`,
    );
  }
  const { agentId, body } = session;
  return { id: session.id, agentId, openTurnId: body.openTurnId, pendingRequests, morePending };
}
