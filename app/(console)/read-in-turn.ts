import { headers } from 'next/headers';
import { clientOf } from '@/lib/access/peer';
import type { ServerContext } from '@/lib/access/server-context';
import { AppError } from '@/lib/protocol/errors';
import { theServer } from '@/lib/server/process-server.mjs';

/**
 * What a page shows of the database, read when its turn among all heavy reads has come.
 *
 * @throws AppError `unavailable` when too many wait
 */
export async function readInTurn<T>(read: (database: ServerContext['database']) => Promise<T>): Promise<T> {
  return readForPage(async (database) => {
    const client = clientOf(await headers());
    return database.reads.run(client, () => read(database));
  });
}

/** As `readInTurn`, but at once: for one row. */
export async function readForPage<T>(read: (database: ServerContext['database']) => Promise<T>): Promise<T> {
  try {
    const { database } = await theServer().parts();
    return await read(database);
  } catch (error) {
    throw error instanceof AppError ? inOneLine(error) : error;
  }
}

/** Next logs whatever a page throws, each time, with its stack, its causes and the digest that it puts on it. */
function inOneLine({ code, message }: AppError): Error {
  const error = new AppError(code, message);
  error.stack = `AppError: ${message}`;
  for (const name of ['code', 'details', 'headers', 'digest']) {
    Object.defineProperty(error, name, { value: Reflect.get(error, name), enumerable: false, writable: true });
  }
  return error;
}
