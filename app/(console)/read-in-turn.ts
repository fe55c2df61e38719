import { AppError } from '@interlude/protocol/errors';
import { headers } from 'next/headers';
import { redirect } from 'next/navigation';
import { cache } from 'react';
import type { Principal } from '@/lib/server/access/principal';
import { type ReadScope, readScope } from '@/lib/server/access/request-context';
import { shownDigests } from '@/lib/server/access/shown-digests';
import { SIGNED_OUT_PATH } from '@/lib/server/access/sign-in';
import { theServer } from '@/lib/server/process-server.mjs';
import { redactResponse } from '@/lib/server/queries/json-response';
import type { ServerParts } from '@/lib/server/server-parts';

/**
 * Reads a page's data through the queue for heavy reads.
 *
 * @throws AppError `unavailable` if the queue is full
 */
export async function readInTurn<T>(read: (scope: ReadScope) => Promise<T>): Promise<T> {
  return readForPage((scope, _, { id }) => scope.reads.run(id, () => read(scope)));
}

const partsOfRequest = cache(() => theServer().parts());

/** Like `readInTurn`, but bypasses the queue. For single rows. */
export async function readForPage<T>(
  read: (scope: ReadScope, parts: Pick<ServerParts, 'caches' | 'retention'>, reader: Principal) => Promise<T>,
): Promise<T> {
  try {
    const reader = await readPrincipal();
    const { scope, redacts } = reader;
    const parts = await partsOfRequest();
    const digests = await shownDigests(reader, parts.database);
    return await redactResponse(
      await read(readScope(parts.database, scope, redacts), parts, reader),
      { redacts },
      digests,
    );
  } catch (error) {
    throw error instanceof AppError ? inOneLine(error) : error;
  }
}

/** The signed-in principal. Each page checks the credential again, because a rewritten path may bypass the proxy. */
export async function readPrincipal(): Promise<Principal> {
  const principal = await theServer().visitor(await headers());
  if (principal === null) redirect(SIGNED_OUT_PATH);
  return principal;
}

/** Shortens an error, because Next logs its stack and causes for each page. */
function inOneLine({ code, message }: AppError): Error {
  const error = new AppError(code, message);
  error.stack = `AppError: ${message}`;
  for (const name of ['code', 'details', 'headers', 'digest']) {
    Object.defineProperty(error, name, { value: Reflect.get(error, name), enumerable: false, writable: true });
  }
  return error;
}
