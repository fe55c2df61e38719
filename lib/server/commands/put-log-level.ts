import type { LogLevelAnswer, SetLogLevel } from '@interlude/protocol/commands';
import { DEBUG_TTL_SECONDS } from '@interlude/protocol/limits';
import { columnText } from '@/db/table-rows';
import type { Asked } from '@/lib/server/access/asked';
import { personOf } from '@/lib/server/access/person-of';
import type { CommandServer } from './command-hub';
import { desireLevel } from './desire-level';
import { missing } from './refusals';

/**
 * `PUT /agents/:id/log-level` `{"level","ttlSeconds"?}`: from now on this level is asked of the agent's runner, instead
 * of what was asked before.
 *
 * @returns once that is on disk, whether or not the runner is there
 * @throws AppError `not_found`
 */
export async function putLogLevel(
  { ids: { agentId }, body: { level, ttlSeconds }, principal }: Asked<'agentId', { body: SetLogLevel }>,
  server: CommandServer,
): Promise<LogLevelAnswer> {
  const byDefault = level === 'debug' ? DEBUG_TTL_SECONDS : null;
  const wish = { level, ttlSeconds: ttlSeconds === undefined ? byDefault : ttlSeconds, by: personOf(principal) };
  const id = columnText(agentId);
  const asked = await server.database.writes.run(async (transaction) => {
    const { rows } = await transaction.execute({ sql: 'SELECT 1 FROM agents WHERE id = ?', args: [id] });
    if (rows.length === 0) throw missing('agent', agentId, 'GET /api/v1/agents lists them.');
    return desireLevel(transaction, { agentId: id, ...wish }, server.now());
  });
  server.commands.wake(id);
  return { ...asked, state: 'queued' };
}
