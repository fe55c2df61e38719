import { columnText } from '@/db/column-text';
import { Pace } from '@/db/next-turn';
import { parseJson } from '@/lib/ingest/parse-json';
import { readBody } from '@/lib/ingest/read-body';
import { type LogLevelAnswer, OPERATOR, setLogLevelSchema } from '@/lib/protocol/commands';
import { AppError } from '@/lib/protocol/errors';
import { DEBUG_TTL_SECONDS } from '@/lib/protocol/limits';
import { LOG_LEVELS } from '@/lib/protocol/log-levels';
import type { CommandServer } from './command-hub';
import { desireLevel } from './desire-level';
import { parseInput } from './read-input';
import { missing } from './refusals';

/**
 * `PUT /agents/:id/log-level` `{"level","ttlSeconds"?}`: from now on this level is asked of the agent's runner, instead
 * of what was asked before.
 *
 * @returns 202 with a LogLevelAnswer once that is on disk, whether or not the runner is there
 * @throws AppError `invalid_argument` (with the `levels` there are), `not_found`
 */
export async function putLogLevel(
  request: Request,
  server: CommandServer,
  { agentId = '' }: Record<string, string>,
): Promise<Response> {
  const wish = await wishIn(parseJson(await readBody(request)));
  const id = columnText(agentId);
  const answer = await server.database.writes.run(async (transaction): Promise<LogLevelAnswer> => {
    const { rows } = await transaction.execute({ sql: 'SELECT 1 FROM agents WHERE id = ?', args: [id] });
    if (rows.length === 0) throw missing('agent', agentId, 'GET /api/v1/agents lists them.');
    const { commandId, desired } = await desireLevel(
      transaction,
      { agentId: id, ...wish, by: OPERATOR.id },
      server.now(),
    );
    return { commandId, state: 'queued', desired };
  });
  server.commands.wake(id);
  return Response.json(answer, { status: 202, headers: { 'cache-control': 'no-store' } });
}

async function wishIn(
  input: unknown,
): Promise<{ level: LogLevelAnswer['desired']['level']; ttlSeconds: number | null }> {
  const given = typeof input === 'object' && input !== null && 'level' in input ? input.level : undefined;
  if (given !== null && !LOG_LEVELS.some((level) => level === given)) {
    const levels = LOG_LEVELS.join(', ');
    throw new AppError(
      'invalid_argument',
      given === undefined
        ? `The level is missing. It is one of ${levels}, or null for the runner’s default.`
        : `${JSON.stringify(given)} is no log level. Use one of ${levels}, or null for the runner’s default.`,
      { details: { levels: LOG_LEVELS } },
    );
  }
  const { level, ttlSeconds = level === 'debug' ? DEBUG_TTL_SECONDS : null } = await parseInput(
    input,
    setLogLevelSchema,
    new Pace(),
  );
  if (level === null && ttlSeconds !== null) {
    throw new AppError('invalid_argument', 'The default has no time limit. Leave ttlSeconds out.');
  }
  return { level, ttlSeconds };
}
