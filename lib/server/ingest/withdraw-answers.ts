import type { CommandEventValue } from '@interlude/protocol/ag-ui';
import type { Command } from '@interlude/protocol/commands';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from './append-facts';
import type { Opening } from './stamp-requests';

const REASON = 'the agent asks anew under the same id: read what it asks now';

/**
 * Gives up the answers that are still on their way to an earlier request with the same id: the id was opened again, with
 * other input or after it was resolved. They are no longer sent, and the transcript says so.
 *
 * An answer that was already sent may have reached the agent before it asked anew. So it is `expired`, not `failed`: if
 * its runner says that it acted on it, that stands.
 */
export async function withdrawAnswers(
  transaction: WriteTransaction,
  openings: readonly Opening[],
  now: number,
): Promise<void> {
  if (openings.length === 0) return;
  const digests = new Map(openings.map(({ sessionId, requestId, digest }) => [keyOf(sessionId, requestId), digest]));
  const agentIds = [...new Set(openings.map(({ agentId }) => agentId))];
  // An agent has few open commands, and they have an index of their own.
  const { rows } = await transaction.execute({
    sql: `SELECT id, agent_id, session_id, type, body, delivery_count FROM commands
          WHERE agent_id IN (SELECT value FROM json_each(?)) AND state IN ('queued', 'delivered')
            AND type IN ('permission.decision', 'question.answer') ORDER BY position`,
    args: [JSON.stringify(agentIds)],
  });
  for (const row of rows) {
    const sessionId = String(row.session_id);
    const body = JSON.parse(String(row.body)) as (Command & { type: 'permission.decision' })['body'];
    const digest = digests.get(keyOf(sessionId, body.requestId));
    if (digest === undefined || digest === body.digest) continue;
    const value: CommandEventValue = {
      command_id: String(row.id),
      type: String(row.type) as Command['type'],
      request_id: body.requestId,
      ...(body.digest === undefined ? {} : { digest: body.digest }),
      reason: REASON,
    };
    await appendFacts(transaction, now, [
      { agentId: String(row.agent_id), sessionId, event: { type: 'CUSTOM', name: CUSTOM.commandFailed, value } },
    ]);
    await transaction.execute({
      sql: `UPDATE commands SET state = iif(delivery_count > 0, 'expired', 'failed'), reason = ?, lease_until = NULL
            WHERE id = ?`,
      args: [REASON, String(row.id)],
    });
  }
}

function keyOf(sessionId: string, requestId: string): string {
  return JSON.stringify([sessionId, requestId]);
}
