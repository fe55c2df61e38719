import { AppError } from '@interlude/protocol/errors';
import { idSchema } from '@interlude/protocol/field-schemas';
import { isPosition, positionToNumber } from '@interlude/protocol/position';
import { SSE_HEADERS } from '@interlude/protocol/sse';
import { columnText } from '@/db/table-rows';
import type { Asked } from '@/lib/server/access/asked';
import { StreamAnswer } from '@/lib/server/access/stream-answer';
import type { CommandServer } from './command-hub';
import { runnerIn } from './runner-arguments';

/**
 * `GET /agents/:id/commands?runner=<id>&startedAt=<ms>&after=<position>`: a runner listens. The agent need not be
 * known yet: it is from now on.
 *
 * @throws AppError `invalid_argument`, `unavailable` while shutting down
 */
export async function getCommands(
  { request, ids: { agentId }, principal, whenOver }: Asked<'agentId'>,
  server: CommandServer,
): Promise<Response> {
  if (!idSchema.safeParse(agentId).success) {
    throw new AppError(
      'invalid_argument',
      'An agent’s id has 1 to 256 UTF-16 code units, none of them NUL, and is not . or ..',
    );
  }
  const after = request.headers.get('last-event-id') || new URL(request.url).searchParams.get('after') || '0';
  if (!isPosition(after)) {
    throw new AppError(
      'invalid_argument',
      `${JSON.stringify(after)} is not a position. Give the id of the last command you have, or leave it out to get all open ones.`,
      { details: { after } },
    );
  }
  // A runner that does not name itself is a new one each time it connects. It gives way to any that does, so that
  // somebody who only looks shuts nobody out.
  const runner = runnerIn(request) ?? { id: `${server.now()}-${crypto.randomUUID()}`, startedAt: 0 };
  const open = await server.commands.open(
    columnText(agentId),
    runner,
    positionToNumber(after),
    request.signal,
    server.streamMaxMs,
    { whenOver, scope: principal.scope },
  );
  return new StreamAnswer(open, SSE_HEADERS);
}
