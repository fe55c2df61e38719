import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fieldsOf, parseJson } from '@interlude/protocol/fields';
import { checkDataFolder, DataFolderError, readPrivate } from '../data-folder.mjs';
import type { Endpoint } from '../server-request';
import { readTokenFile, tokenSource } from './token-source';

/**
 * Where the server is. On the dashboard's own machine nobody has to say: the server leaves its address and tokens in
 * the data directory.
 */
export interface ServerFlags {
  url?: string | undefined;
  'token-file'?: string | undefined;
}

/** Who asks where nobody gave a token: the runners of this machine, or whoever Interlude belongs to. */
export type Asker = 'runner' | 'owner';

/** In the data folder. An older server made one for all. */
const TOKEN_FILES: Record<Asker, readonly string[]> = { runner: ['runner-token', 'token'], owner: ['token'] };

type Environment = Record<string, string | undefined>;

const DEFAULT_PORT = 4319;
const packageRoot = fileURLToPath(new URL('../../..', import.meta.url));

export function dataDir(env: Environment): string {
  return fromInterlude(env.INTERLUDE_DATA_DIR || '.interlude');
}

/**
 * The data folder of a command that is about to use it.
 * @throws DataFolderError if others could have put something there
 */
export function openDataDir(env: Environment): string {
  const folder = dataDir(env);
  checkDataFolder(folder);
  return folder;
}

/**
 * A folder that the environment names. A relative path starts at Interlude's own folder, wherever a command is called:
 * a project with a folder of that name must not pass for ours.
 */
export function fromInterlude(path: string): string {
  return resolve(packageRoot, path);
}

/**
 * A flag wins over the environment, and that over what the local server wrote. Read at each call: a restarted local
 * server may have another port and another token.
 *
 * @param onToken hears each token before it is used, so that no log shows it
 * @throws CliError where a file was named that has no token
 */
export function serverEndpoint(
  flags: ServerFlags,
  env: Environment,
  onToken: (token: string | undefined) => void = () => undefined,
  asker: Asker = 'runner',
): Endpoint {
  const source = tokenSource(flags, env);
  if (source.kind === 'file') readTokenFile(source.path);
  const tokenFor = (url: string) => {
    if (source.kind === 'file') return readTokenFile(source.path);
    return source.kind === 'environment' ? source.token : localToken(url, env, asker);
  };
  return async () => {
    const url = flags.url ?? env.INTERLUDE_URL ?? (await localUrl(env));
    const token = tokenFor(url);
    onToken(token);
    return { url, token };
  };
}

/** Names the server in what is kept per server: two addresses are two servers, the local one stays itself. */
export function serverKey(flags: ServerFlags, env: Environment): string {
  const url = flags.url ?? env.INTERLUDE_URL;
  return url ? new URL(url).href : 'local';
}

/**
 * Where a person finds the pages of a server. On the dashboard's own machine that is a name which only its owner can
 * read, and which is told to nobody but a person who looks at a terminal.
 */
export async function pagesUrl(url: string, env: Environment): Promise<string> {
  const text = process.stdout.isTTY ? await readFile(join(dataDir(env), 'server.json'), 'utf8').catch(() => '') : '';
  const { url: local, pages } = fieldsOf(parseJson(text));
  return (local === url && typeof pages === 'string' ? pages : url).replace(/\/+$/, '');
}

async function localUrl(env: Environment): Promise<string> {
  // missing, or half written by a server that is just starting
  const text = await readFile(join(dataDir(env), 'server.json'), 'utf8').catch(() => '');
  const { url } = fieldsOf(parseJson(text));
  return typeof url === 'string' ? url : `http://127.0.0.1:${env.PORT ?? DEFAULT_PORT}`;
}

/** The local tokens open the local server only: they are never sent to another machine. */
function localToken(url: string, env: Environment, asker: Asker): string | undefined {
  const { hostname } = new URL(url);
  if (hostname !== 'localhost' && hostname !== '[::1]' && !/^127\./.test(hostname)) return undefined;
  for (const name of TOKEN_FILES[asker]) {
    try {
      const token = readPrivate(join(dataDir(env), name)).trim();
      if (token !== '') return token;
    } catch (error) {
      if (error instanceof DataFolderError) throw error;
    }
  }
  return undefined;
}
