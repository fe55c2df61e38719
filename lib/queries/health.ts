import type { ServerContext } from '@/lib/access/server-context';
import { AppError } from '@/lib/protocol/errors';

const UNCACHED = { 'cache-control': 'no-store' };

/** `GET /healthz`: this process answers. Open to everybody, and says nothing else. */
export async function healthz(): Promise<Response> {
  return Response.json({ status: 'ok' }, { headers: UNCACHED });
}

/**
 * `GET /readyz`: the database answers. Open to everybody, so the cause of a failure goes to our own log only.
 *
 * @throws AppError `unavailable`
 */
export async function readyz(context: () => Promise<ServerContext>): Promise<Response> {
  try {
    const { database } = await context();
    await database.reader.execute('SELECT position FROM counter');
  } catch (cause) {
    console.error('[interlude] not ready:', cause);
    throw new AppError('unavailable', 'The database does not answer yet; the server’s own log has the cause.', {
      cause,
      headers: { 'retry-after': '5' },
    });
  }
  return Response.json({ status: 'ready' }, { headers: UNCACHED });
}
