import { type Sending, sendingTo } from '@interlude/protocol/sending';
import { agentFromRow, sessionFromRow } from '@/db/read-model-rows';
import { sessions } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { type AnswerableRequest, sessionNow, storedFold } from '@/lib/server/ingest/project-session';
import { conflict, missing } from './refusals';

export interface WritableSession {
  id: string;
  agentId: string;
  openTurnId: string | null;
  pendingRequests: readonly AnswerableRequest[];
  /** What becomes of a message that is sent to it now. */
  sending: Sending;
  /** A runner listens for its agent. */
  hasRunner: boolean;
  /** Whether more may be open, which only its events tell. */
  hasMorePending: boolean;
}

const MEMORY = shapeOf(sessions, 'memory');

/**
 * The session something is asked of.
 * @throws AppError `not_found`; `conflict` when its agent has ended and no runner has come since
 */
export async function writableSession(
  transaction: WriteTransaction,
  sessionId: string,
  now: number,
): Promise<WritableSession> {
  const id = columnText(sessionId);
  const [found, agents] = await transaction.batch([
    { sql: 'SELECT * FROM sessions WHERE id = ?', args: [id] },
    { sql: 'SELECT * FROM agents WHERE id = (SELECT agent_id FROM sessions WHERE id = ?)', args: [id] },
  ]);
  const row = found?.rows[0];
  if (row === undefined) throw missing('session', sessionId, 'GET /api/v1/sessions lists them.');
  const session = sessionNow(sessionFromRow(row), now);
  const agent = agents?.rows[0] ? agentFromRow(agents.rows[0]) : null;
  const sending = sendingTo(session, agent);
  if (sending.kind === 'refused') throw conflict('session_ended', sending.reason);
  const { pendingRequests = [], hasMorePending = false } = storedFold(MEMORY.read(row).memory);
  const { agentId, openTurnId } = session;
  const hasRunner = agent?.connection === 'connected';
  transaction.touch(`agent:${agentId}`);
  return { id: session.id, agentId, openTurnId, sending, hasRunner, pendingRequests, hasMorePending };
}
