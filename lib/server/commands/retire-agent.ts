import type { SessionState } from '@interlude/protocol/agent-state';
import type { Retire, RetireAnswer } from '@interlude/protocol/commands';
import { AGENT_ROW, agentFromRow } from '@/db/read-model-rows';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { Asked } from '@/lib/server/access/asked';
import type { ServerContext } from '@/lib/server/access/server-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { conflict, missing } from './refusals';

/** In these something goes on. */
const UNDER_WAY = ['starting', 'working', 'needs-input', 'waiting-on-background'] as const satisfies SessionState[];

/** Its sessions in which something goes on, as far as anybody knows: of those that are away nothing is known. */
async function countAtWork(transaction: WriteTransaction, agentId: string): Promise<number> {
  const { rows } = await transaction.execute({
    sql: `SELECT count(*) AS at_work FROM sessions WHERE agent_id = ?1 AND NOT has_ended AND NOT is_away
          AND state IN (SELECT value FROM json_each(?2))`,
    args: [columnText(agentId), JSON.stringify(UNDER_WAY)],
  });
  return Number(rows[0]?.at_work);
}

/**
 * `PUT /agents/:id/retirement`: a person puts away an agent that is not coming back, or takes it back. Its next sign of
 * life takes it back too.
 *
 * @returns the same again is answered the same and changes nothing
 * @throws AppError `not_found`, `conflict`: `agent_connected`, `agent_at_work`
 */
export async function putRetirement(
  { ids: { agentId }, body: { retired } }: Asked<'agentId', { body: Retire }>,
  server: ServerContext,
): Promise<RetireAnswer> {
  const now = server.now();
  return server.database.writes.run(async (transaction) => {
    const { rows } = await transaction.execute({
      sql: `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`,
      args: [columnText(agentId)],
    });
    if (rows[0] === undefined) throw missing('agent', agentId, 'GET /api/v1/agents lists them.');
    const { id, retiredAt, connection, updatedPosition } = agentFromRow(rows[0]);
    if (retired === (retiredAt !== null)) return { retiredAt, position: updatedPosition };
    if (retired && connection === 'connected') {
      throw conflict('agent_connected', 'The runner of this agent is connected. Stop it first, then retire the agent.');
    }
    const atWork = retired ? await countAtWork(transaction, id) : 0;
    if (atWork > 0) {
      throw conflict(
        'agent_at_work',
        `${atWork} of its sessions are not over. Wait for their end, or interrupt them, then retire the agent.`,
        { sessions: atWork },
      );
    }
    const fact = { kind: 'agent-retired', agentId: id, retiredAt: retired ? now : null } as const;
    const position = await appendFacts(transaction, now, [fact]);
    return { retiredAt: fact.retiredAt, position: position ?? updatedPosition };
  });
}
