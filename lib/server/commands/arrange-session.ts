import type { Arrange } from '@interlude/protocol/commands';
import type { Arrangement, ArrangementAnswer } from '@interlude/protocol/read-models';
import { SESSION_ROW, sessionFromRow } from '@/db/read-model-rows';
import { columnText } from '@/db/table-rows';
import type { Asked } from '@/lib/server/access/asked';
import type { ServerContext } from '@/lib/server/access/server-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { missing } from './refusals';

/**
 * `PUT /sessions/:id/arrangement`: a person names a session, pins or archives it, or has seen how it stands.
 *
 * @returns the same again is answered the same and changes nothing
 * @throws AppError `not_found`
 */
export async function putArrangement(
  { ids: { sessionId }, body }: Asked<'sessionId', { body: Arrange }>,
  server: ServerContext,
): Promise<ArrangementAnswer> {
  const now = server.now();
  return server.database.writes.run(async (transaction) => {
    const { rows } = await transaction.execute({
      sql: `SELECT ${SESSION_ROW.columns()} FROM sessions WHERE id = ?`,
      args: [columnText(sessionId)],
    });
    if (rows[0] === undefined) throw missing('session', sessionId, 'GET /api/v1/sessions lists them.');
    const { id, agentId, arrangement: before, updatedPosition } = sessionFromRow(rows[0]);
    const arrangement = arranged(before, body, now);
    if (JSON.stringify(arrangement) === JSON.stringify(before)) return { arrangement, position: updatedPosition };
    const fact = { kind: 'session-arranged', agentId, sessionId: id, arrangement } as const;
    return { arrangement, position: (await appendFacts(transaction, now, [fact])) ?? updatedPosition };
  });
}

function arranged(before: Arrangement, { name, pinned, archived, seenState }: Arrange, now: number): Arrangement {
  const since = (wanted: boolean | undefined, at: number | null) =>
    wanted === undefined ? at : wanted ? (at ?? now) : null;
  return {
    name: name === undefined ? before.name : name?.trim() || null,
    pinnedAt: since(pinned, before.pinnedAt),
    archivedAt: since(archived, before.archivedAt),
    seenState: seenState === undefined ? before.seenState : seenState,
  };
}
