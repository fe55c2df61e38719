import * as z from 'zod';
import { columnText } from '@/db/column-text';
import { AGENT_WRITER, agentFromRow, agentToRow } from '@/db/fleet-rows';
import { inPieces, runInTurns } from '@/db/json-pieces';
import { sessions } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/write-queue';
import { authenticate } from '@/lib/access/authenticate';
import type { ServerContext } from '@/lib/access/server-context';
import { AppError } from '@/lib/protocol/errors';
import { isPosition, type Position, positionFromNumber, positionToNumber } from '@/lib/protocol/position';
import type { InsightsSeen } from '@/lib/protocol/read-models';
import { HOOK_FATAL } from '@/lib/protocol/signals';
import { readInput } from './read-input';
import { takePosition, takePositions } from './take-position';

/** How many failures nobody has seen, and how many of them are not hooks that died. */
interface Unseen {
  all: number;
  other: number;
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
  // counted where they are: an agent may have tens of thousands, in as many sessions
  const { rows: counts } = await transaction.execute({
    sql: `SELECT session_id, count(*) AS failures, sum(signal <> ?) AS other FROM insights
          WHERE agent_id = ? AND is_failure = 1 AND seen_at IS NULL GROUP BY session_id`,
    args: [HOOK_FATAL, agentId],
  });
  const left = new Map<string | null, Unseen>();
  for (const { session_id, failures, other } of counts) {
    left.set(session_id === null ? null : String(session_id), { all: Number(failures), other: Number(other) });
  }
  const unseen = sumOf([...left.values()]);
  const agent = agentFromRow(row);
  if ((marked?.rows.length ?? 0) === 0) return { seen: 0, unseen: agent.insightCount, position: agent.updatedPosition };
  await recountSessions(transaction, agentId, left);
  const position = await takePosition(transaction);
  const updatedPosition = positionFromNumber(position);
  const seen = { ...agent, insightCount: unseen.all, otherFailureCount: unseen.other, updatedPosition };
  await transaction.execute(AGENT_WRITER.one(agentToRow(seen)));
  return { seen: marked?.rows.length ?? 0, unseen: unseen.all, position: updatedPosition };
}

/**
 * What is left of the marks on the agent's sessions: a session's own, and those that may concern any that is not done.
 * It never grows here: a session that began after a failure was never marked with it.
 */
async function recountSessions(
  transaction: WriteTransaction,
  agentId: string,
  unseen: ReadonlyMap<string | null, Unseen>,
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: 'SELECT id, state, insight_count FROM sessions WHERE agent_id = ? AND insight_count > 0 ORDER BY id',
    args: [agentId],
  });
  const changes = rows.map(MARKED.read).flatMap(({ id, state, insightCount }) => {
    const own = unseen.get(id) ?? NONE;
    const left = state === 'done' ? own : sumOf([own, unseen.get(null) ?? NONE]);
    return left.all < insightCount ? [{ id, left }] : [];
  });
  const first = changes.length === 0 ? 0 : await takePositions(transaction, changes.length);
  const updates = changes.map(({ id, left }, at) => [id, left.all, left.other, first + at]);
  const statements = inPieces(updates, (json) => ({
    sql: `UPDATE sessions SET insight_count = told.value->>1, other_failure_count = told.value->>2,
            updated_position = told.value->>3
          FROM json_each(?) AS told WHERE sessions.id = told.value->>0`,
    args: [json],
  }));
  await runInTurns(transaction, statements);
}

const MARKED = shapeOf(sessions, 'id', 'state', 'insightCount');
const NONE: Unseen = { all: 0, other: 0 };

function sumOf(counts: readonly Unseen[]): Unseen {
  return counts.reduce((sum, { all, other }) => ({ all: sum.all + all, other: sum.other + other }), NONE);
}
