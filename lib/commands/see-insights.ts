import { columnText } from '@/db/column-text';
import { AGENT_ROW, agentFromRow } from '@/db/fleet-rows';
import type { WriteTransaction } from '@/db/write-queue';
import type { Asked } from '@/lib/access/asked';
import type { ServerContext } from '@/lib/access/server-context';
import { appendFacts } from '@/lib/ingest/append-facts';
import { sumOf, type UnseenFailures } from '@/lib/ingest/failure-tally';
import type { SeeInsights } from '@/lib/protocol/commands';
import { type Position, positionToNumber } from '@/lib/protocol/position';
import type { InsightsSeen } from '@/lib/protocol/read-models';
import { HOOK_FATAL } from '@/lib/protocol/signals';
import { missing } from './refusals';

/**
 * `POST /agents/:id/insights/seen` `{"upTo"}`: a person has looked at an agent's failures up to this one.
 *
 * @returns the same again is answered the same and changes nothing
 * @throws AppError `not_found`
 */
export async function postInsightsSeen(
  { ids: { agentId }, body: { upTo } }: Asked<'agentId', { body: SeeInsights }>,
  server: ServerContext,
): Promise<InsightsSeen> {
  const now = server.now();
  return server.database.writes.run((transaction) => seeInsights(transaction, columnText(agentId), upTo, now));
}

/** @param agentId as its column has it */
export async function seeInsights(
  transaction: WriteTransaction,
  agentId: string,
  upTo: Position,
  now: number,
): Promise<InsightsSeen> {
  const [agents, marked] = await transaction.batch([
    { sql: `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`, args: [agentId] },
    {
      sql: `UPDATE insights SET seen_at = ?
            WHERE agent_id = ? AND is_failure = 1 AND position <= ? AND seen_at IS NULL RETURNING position`,
      args: [now, agentId, positionToNumber(upTo)],
    },
  ]);
  const row = agents?.rows[0];
  if (row === undefined) throw missing('agent', agentId, 'GET /api/v1/agents lists them.');
  const seen = marked?.rows.length ?? 0;
  if (seen === 0) {
    const { insightCount, updatedPosition } = agentFromRow(row);
    return { seen, unseen: insightCount, position: updatedPosition };
  }
  const unseen = await readUnseen(transaction, agentId);
  const sessionIds = await readMarked(transaction, agentId);
  let position: Position | null = null;
  for (let at = 0; at === 0 || at < sessionIds.length; at += MOST_SESSIONS) {
    const some = sessionIds.slice(at, at + MOST_SESSIONS);
    const fact = { kind: 'failures-seen', agentId, upTo: positionToNumber(upTo), unseen, sessionIds: some } as const;
    position = await appendFacts(transaction, now, [fact]);
  }
  return { seen, unseen: sumOf(...unseen.values()).all, position: position ?? '0' };
}

/** Most sessions recounted in one go: each of them has to be read. */
const MOST_SESSIONS = 500;

/** Counted in the database: an agent may have tens of thousands, in as many sessions. */
async function readUnseen(transaction: WriteTransaction, agentId: string): Promise<UnseenFailures> {
  const { rows } = await transaction.execute({
    sql: `SELECT session_id, count(*) AS failures, sum(signal <> ?) AS other FROM insights
          WHERE agent_id = ? AND is_failure = 1 AND seen_at IS NULL GROUP BY session_id`,
    args: [HOOK_FATAL, agentId],
  });
  return new Map(
    rows.map(({ session_id, failures, other }) => [
      session_id === null ? null : String(session_id),
      { all: Number(failures), other: Number(other) },
    ]),
  );
}

async function readMarked(transaction: WriteTransaction, agentId: string): Promise<string[]> {
  const { rows } = await transaction.execute({
    sql: `SELECT id FROM sessions WHERE agent_id = ? AND insight_count > 0 ORDER BY id`,
    args: [agentId],
  });
  return rows.map(({ id }) => String(id));
}
