import { headers } from 'next/headers';
import { clientOf } from '@/lib/access/peer';
import { type ServerContext, serverContext } from '@/lib/access/server-context';

/**
 * What a page shows of the database, read when its turn among all heavy reads has come.
 *
 * @throws AppError `unavailable` when too many wait
 */
export async function readInTurn<T>(read: (database: ServerContext['database']) => Promise<T>): Promise<T> {
  const { database } = await serverContext();
  return database.reads.run(clientOf(await headers()), () => read(database));
}
