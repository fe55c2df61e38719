import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CliError, EXIT } from '@interlude/runner/cli/exit';
import { fromInterlude, openDataDir } from '@interlude/runner/cli/local-server';
import { databaseOptions } from '@/db/client';
import { setAsideForeignLog } from '@/db/database-file';
import { LocalConnection } from '@/db/local-connection';
import { LocalReader } from '@/db/local-reader';
import { connect, MAINTENANCE_MS, serverAddress } from '@/db/open-server';
import type { Reader } from '@/db/reader';

type Environment = Record<string, string | undefined>;

/** Where a database is. A server's token is never told with its name. */
export type Place = { kind: 'file'; path: string } | { kind: 'server'; url: string; authToken: string | undefined };

/** Tells a lock of another process at once; whoever asked waits. */
export const LOCK_TIMEOUT_MS = 20;

const SERVER = /^(libsql|https?|wss?):\/\//;

/** The dashboard's own database, as the environment says. @throws DataFolderError */
export function ownPlace(env: Environment): Place {
  const { url, authToken } = databaseOptions({
    ...env,
    INTERLUDE_DATA_DIR: fromInterlude(env.INTERLUDE_DATA_DIR || '.interlude'),
  });
  if (!url.startsWith('file:')) return { kind: 'server', url, authToken };
  if (!env.INTERLUDE_DATABASE_URL) return { kind: 'file', path: join(openDataDir(env), 'interlude.db') };
  return { kind: 'file', path: fileOf(url) };
}

/**
 * What a person means by the name of a database: a path from where they stand, `file:…`, or the address of a server.
 *
 * @param authToken of the server, if it is one
 */
export function placeOf(text: string, authToken: string | undefined): Place {
  if (SERVER.test(text)) {
    if (!URL.canParse(text)) throw new CliError(EXIT.usage, 'that is no address of a server');
    return { kind: 'server', url: text, authToken };
  }
  if (text.startsWith('file:'))
    return { kind: 'file', path: fileOf(databaseOptions({ INTERLUDE_DATABASE_URL: text }).url) };
  return { kind: 'file', path: resolve(text) };
}

function fileOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname);
}

/** What to call it in a message: an address may hold a secret. */
export function nameOf(place: Place): string {
  return place.kind === 'file' ? place.path : new URL(place.url).host;
}

export interface Reading {
  reader: Reader;
  close(): void;
}

/** Opens a database that is there, whatever its schema, to read from. @throws CliError where there is none */
export async function openToRead(place: Place): Promise<Reading> {
  if (place.kind === 'server') {
    const { client, close } = connect(serverAddress(place.url, place.authToken), MAINTENANCE_MS);
    return { reader: client, close };
  }
  const path = await existingFile(place);
  const reader = new LocalReader(() => new LocalConnection(path, LOCK_TIMEOUT_MS), 'thread');
  return { reader, close: () => reader.close() };
}

/** A connection to a file that is there. @throws CliError where there is none */
export async function connectToFile(place: Place & { kind: 'file' }): Promise<LocalConnection> {
  return new LocalConnection(await existingFile(place), LOCK_TIMEOUT_MS);
}

async function existingFile({ path }: Place & { kind: 'file' }): Promise<string> {
  if (!existsSync(path)) throw new CliError(EXIT.failed, `there is no database at ${path}`);
  // SQLite would apply the log of another database that lies beside it
  await setAsideForeignLog(path);
  return path;
}
