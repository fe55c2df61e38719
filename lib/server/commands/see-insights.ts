import type { SeeInsights } from '@interlude/protocol/commands';
import { positionToNumber } from '@interlude/protocol/position';
import type { InsightsSeen } from '@interlude/protocol/read-models';
import { AGENT_ROW, agentFromRow } from '@/db/read-model-rows';
import { columnText } from '@/db/table-rows';
import type { Asked } from '@/lib/server/access/asked';
import type { ServerContext } from '@/lib/server/access/server-context';
import { missing } from './refusals';
import { seeFailures } from './see-failures';

/**
 * `POST /agents/:id/insights/seen` `{"upTo"}`: a person has looked at an agent's failures up to this one.
 *
 * @returns the same again is answered the same and changes nothing
 * @throws AppError `not_found`
 */
export async function postInsightsSeen(
  { ids: { agentId }, body: { upTo } }: Asked<'agentId', { body: SeeInsights }>,
  { database: { writes }, now }: ServerContext,
): Promise<InsightsSeen> {
  const id = columnText(agentId);
  const seen = (await seeFailures(writes, new Map([[id, positionToNumber(upTo)]]), now())).get(id) ?? 0;
  const { rows } = await writes.run((transaction) =>
    transaction.execute({ sql: `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`, args: [id] }),
  );
  if (rows[0] === undefined) throw missing('agent', agentId, 'GET /api/v1/agents lists them.');
  const { insightCount, updatedPosition } = agentFromRow(rows[0]);
  return { seen, unseen: insightCount, position: updatedPosition };
}
