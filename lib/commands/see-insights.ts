import * as z from 'zod';
import { columnText } from '@/db/column-text';
import { agentFromRow, agentToRow } from '@/db/fleet-rows';
import type { WriteTransaction } from '@/db/write-queue';
import { authenticate } from '@/lib/access/authenticate';
import type { ServerContext } from '@/lib/access/server-context';
import { AppError } from '@/lib/protocol/errors';
import { isPosition, type Position, positionFromNumber, positionToNumber } from '@/lib/protocol/position';
import type { InsightsSeen } from '@/lib/protocol/read-models';
import { isOfHook } from '@/lib/protocol/signals';
import { readInput } from './read-input';
import { takePosition } from './take-position';

interface UnseenFailure {
  sessionId: string | null;
  isOther: boolean;
}

const seenSchema = z.object({ upTo: z.string().refine(isPosition, 'upTo is the position of an insight') }).strict();

/**
 * `POST /agents/:id/insights/seen` `{"upTo"}`: a person has looked at an agent's failures up to this one.
 *
 * @returns 200 with InsightsSeen; the same again is answered the same and changes nothing
 * @throws AppError `invalid_argument`, `not_found`
 */
export async function postInsightsSeen(
  request: Request,
  server: ServerContext,
  { agentId = '' }: Record<string, string>,
): Promise<Response> {
  await authenticate(request, server);
  const { upTo } = await readInput(request, seenSchema);
  const now = server.now();
  const answer = await server.database.writes.run((transaction) =>
    seeInsights(transaction, columnText(agentId), upTo, now),
  );
  return Response.json(answer, { headers: { 'cache-control': 'no-store' } });
}

async function seeInsights(
  transaction: WriteTransaction,
  agentId: string,
  upTo: Position,
  now: number,
): Promise<InsightsSeen> {
  const [agents, marked] = await transaction.batch([
    { sql: 'SELECT id, last_seen_at, body, updated_position FROM agents WHERE id = ?', args: [agentId] },
    {
      sql: `UPDATE insights SET seen_at = ?
            WHERE agent_id = ? AND is_failure = 1 AND position <= ? AND seen_at IS NULL RETURNING position`,
      args: [now, agentId, positionToNumber(upTo)],
    },
  ]);
  const row = agents?.rows[0];
  if (row === undefined) {
    const message = `There is no agent ${JSON.stringify(agentId)}. GET /api/v1/agents lists them.`;
    throw new AppError('not_found', message);
  }
  const { rows: unseen } = await transaction.execute({
    sql: 'SELECT session_id, signal FROM insights WHERE agent_id = ? AND is_failure = 1 AND seen_at IS NULL',
    args: [agentId],
  });
  const left = unseen.map(({ session_id, signal }) => ({
    sessionId: session_id === null ? null : String(session_id),
    isOther: !isOfHook({ signal: String(signal) }),
  }));
  const agent = agentFromRow(row);
  if ((marked?.rows.length ?? 0) === 0) return { seen: 0, unseen: agent.insightCount, position: agent.updatedPosition };
  await recountSessions(transaction, agentId, left);
  const position = await takePosition(transaction);
  const updatedPosition = positionFromNumber(position);
  const { body } = agentToRow({
    ...agent,
    insightCount: left.length,
    otherFailureCount: othersOf(left),
    updatedPosition,
  });
  await transaction.execute({
    sql: 'UPDATE agents SET body = ?, updated_position = ? WHERE id = ?',
    args: [JSON.stringify(body), position, agentId],
  });
  return { seen: marked?.rows.length ?? 0, unseen: unseen.length, position: updatedPosition };
}

/**
 * What is left of the marks on the agent's sessions: a session's own, and those that may concern any that is not done.
 * It never grows here: a session that began after a failure was never marked with it.
 */
async function recountSessions(
  transaction: WriteTransaction,
  agentId: string,
  unseen: readonly UnseenFailure[],
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT id, state, body->>'$.insightCount' AS marks FROM sessions
          WHERE agent_id = ? AND body->>'$.insightCount' > 0 ORDER BY id`,
    args: [agentId],
  });
  for (const { id, state, marks } of rows) {
    const left = unseen.filter(({ sessionId }) => sessionId === id || (sessionId === null && state !== 'done'));
    if (left.length >= Number(marks)) continue;
    const position = await takePosition(transaction);
    await transaction.execute({
      sql: `UPDATE sessions SET body = json_set(body, '$.insightCount', ?, '$.otherFailureCount', ?), updated_position = ?
            WHERE id = ?`,
      args: [left.length, othersOf(left), position, id as string],
    });
  }
}

function othersOf(failures: readonly UnseenFailure[]): number {
  return failures.filter(({ isOther }) => isOther).length;
}
