import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fieldsOf, parseJson } from '@interlude/protocol/fields';
import { checkDataFolder, DataFolderError, readPrivate } from '../host/data-folder.mjs';
import { interludeCommand } from '../host/own-program.mjs';
import { connectionMessage, type Endpoint, errorIn, requestServer } from '../host/server-request';
import { errorCode } from '../host/system-error.mjs';
import { CliError, EXIT } from './command';

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

/**
 * Where the token of a command comes from. Not from its arguments: those stand in the list of processes, which
 * everybody on the machine may read, and in the shell's history.
 */
type TokenSource =
  | { kind: 'file'; path: string }
  | { kind: 'environment'; token: string }
  /** What the server on this machine has left in the data folder. */
  | { kind: 'machine' };

export function tokenSource(
  flags: { 'token-file'?: string | undefined },
  env: Record<string, string | undefined>,
): TokenSource {
  const file = flags['token-file'] ?? (env.INTERLUDE_TOKEN_FILE || undefined);
  if (file !== undefined) return { kind: 'file', path: resolve(file) };
  const token = env.INTERLUDE_TOKEN?.trim();
  return token ? { kind: 'environment', token } : { kind: 'machine' };
}

/**
 * Read at each use: a token that is renewed is taken up by whoever runs already.
 *
 * @throws CliError in one line
 */
function readTokenFile(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    const make = interludeCommand(['tokens', 'create', '--help']);
    throw new CliError(EXIT.failed, `the token file ${path} can’t be read (${errorCode(error)}); see "${make}"`);
  }
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new CliError(EXIT.failed, `the token file ${path} has to have one token in it and nothing else`);
}

/** What to do where the server refuses the token of a runner. */
export function adviceOnToken(source: TokenSource): string {
  const make = interludeCommand(['tokens', 'create', '--help']);
  switch (source.kind) {
    case 'file':
      return `put another into ${source.path}, which is read again within 30 s (to make one: ${make})`;
    case 'environment':
      return `start this again with another in INTERLUDE_TOKEN (to make one: ${make})`;
    case 'machine':
      return `"npm start" makes one for the runners of its machine; elsewhere give one with --token-file (to make one: ${make})`;
  }
}

const WITHIN_MS = 30_000;

/**
 * One request of somebody at a terminal, who is told in one line why it came to nothing.
 *
 * @param endpoint with the token of whoever Interlude belongs to
 * @throws CliError
 */
export async function askServer<Answer>(
  endpoint: Endpoint,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<Answer> {
  const { url, token } = await endpoint();
  const give = 'the one of the data folder’s file "token", with --token-file or INTERLUDE_TOKEN';
  if (token === undefined) throw new CliError(EXIT.failed, `there is no token for ${url}; give its owner’s: ${give}`);
  let status: number;
  let text: string;
  try {
    const response = await requestServer(async () => ({ url, token }), path, {
      ...(method === 'GET' ? {} : { method }),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    status = response.status;
    text = await response.text();
  } catch (error) {
    const why = connectionMessage(error);
    throw new CliError(EXIT.failed, `${url} does not answer (${why}); start Interlude, or name another with --url`);
  }
  if (status === 200 || status === 201) return parseJson(text) as Answer;
  const error = errorIn(text);
  if (status === 401 && error !== null) {
    throw new CliError(EXIT.failed, `${url} does not know this token; give its owner’s: ${give}`);
  }
  throw new CliError(EXIT.failed, error === null ? `${url} is no Interlude: it answered ${status}` : error.message);
}
