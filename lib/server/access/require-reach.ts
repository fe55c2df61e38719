import { AppError } from '@interlude/protocol/errors';
import { reachesAgent, reachesLog, type Scope } from '@interlude/protocol/scope';
import type { Database } from '@/db/client';
import { sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';

/**
 * Refuses what a path names and a scope does not reach, in the same words as what does not exist. For lists and
 * streams, which name nothing, the queries themselves leave out what is out of scope.
 *
 * A session belongs for good to the first agent that writes to it, so that what is looked up here stays true.
 *
 * @throws AppError `not_found`
 */
export async function requireReach(
  { reader }: Database,
  scope: Scope,
  ids: { readonly sessionId?: string; readonly agentId?: string },
  /** What is asked for of an agent: its log, or anything else. */
  of: 'agent' | 'log',
): Promise<void> {
  if (scope.kind === 'everything') return;
  const { sessionId, agentId } = ids;
  const reaches = of === 'log' ? reachesLog : reachesAgent;
  if (agentId !== undefined && !reaches(scope, columnText(agentId))) throw unknown('agent', agentId);
  if (sessionId === undefined) return;
  const { rows } = await reader.execute({
    sql: `SELECT 1 FROM sessions WHERE id = ? AND ${sessionsIn(scope, 'id')}`,
    args: [columnText(sessionId)],
  });
  if (rows.length === 0) throw unknown('session', sessionId);
}

function unknown(what: string, id: string): AppError {
  return new AppError(
    'not_found',
    `There is no ${what} ${JSON.stringify(id)}. GET /api/v1/sessions and /agents list what there is.`,
  );
}
