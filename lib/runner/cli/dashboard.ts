import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fieldsOf, parseJson } from '@interlude/protocol/fields';
import { checkDataFolder, DataFolderError, readPrivate } from '../host/data-folder.mjs';
import { dataFolder, interludeCommand } from '../host/own-program.mjs';
import { connectionMessage, type Endpoint, errorIn, requestServer } from '../host/server-request';
import { errorCode } from '../host/system-error.mjs';
import { CliError, EXIT } from './command';

/**
 * On the dashboard's own machine, neither flag is needed: the server leaves its address and tokens in the data
 * directory.
 */
export interface ServerFlags {
  url?: string | undefined;
  'token-file'?: string | undefined;
}

/** Selects the token in the data directory: the one for this machine's runners, or the owner's. */
export type LocalRole = 'runner' | 'owner';

/** Older servers create `token` only. */
const TOKEN_FILES: Record<LocalRole, readonly string[]> = { runner: ['runner-token', 'token'], owner: ['token'] };

type Environment = Record<string, string | undefined>;

const DEFAULT_PORT = 4319;
/**
 * The data directory, after a check.
 * @throws DataFolderError if other users could have written to it
 */
export function openDataDir(env: Environment): string {
  const folder = dataFolder(env);
  checkDataFolder(folder);
  return folder;
}

/**
 * A flag wins over the environment, and the environment over the files of the local server. Every call reads them again,
 * because a restarted local server may have another port and token.
 *
 * @param onToken called with each token before it is used, so that logs can redact it
 * @throws CliError if the token file has no token
 */
export function serverEndpoint(
  flags: ServerFlags,
  env: Environment,
  onToken: (token: string | undefined) => void = () => undefined,
  role: LocalRole = 'runner',
): Endpoint {
  const source = tokenSource(flags, env);
  if (source.kind === 'file') readTokenFile(source.path);
  const tokenFor = (url: string) => {
    if (source.kind === 'file') return readTokenFile(source.path);
    return source.kind === 'environment' ? source.token : localToken(url, env, role);
  };
  return async () => {
    const url = flags.url ?? env.INTERLUDE_URL ?? (await localUrl(env));
    const token = tokenFor(url);
    onToken(token);
    return { url, token };
  };
}

/** Identifies the server in per-server state: its address, or `local`. */
export function serverKey(flags: ServerFlags, env: Environment): string {
  const url = flags.url ?? env.INTERLUDE_URL;
  return url ? new URL(url).href : 'local';
}

/**
 * The address of the server's pages. On the dashboard's own machine it contains a secret host name, which is printed on
 * terminals only.
 */
export async function pagesUrl(url: string, env: Environment): Promise<string> {
  const text = process.stdout.isTTY ? await readFile(join(dataFolder(env), 'server.json'), 'utf8').catch(() => '') : '';
  const { url: local, pages } = fieldsOf(parseJson(text));
  return (local === url && typeof pages === 'string' ? pages : url).replace(/\/+$/, '');
}

async function localUrl(env: Environment): Promise<string> {
  // Missing or incomplete while the server starts.
  const text = await readFile(join(dataFolder(env), 'server.json'), 'utf8').catch(() => '');
  const { url } = fieldsOf(parseJson(text));
  return typeof url === 'string' ? url : `http://127.0.0.1:${env.PORT ?? DEFAULT_PORT}`;
}

/** Local tokens are never sent to another machine. */
function localToken(url: string, env: Environment, role: LocalRole): string | undefined {
  const { hostname } = new URL(url);
  if (hostname !== 'localhost' && hostname !== '[::1]' && !/^127\./.test(hostname)) return undefined;
  for (const name of TOKEN_FILES[role]) {
    try {
      const token = readPrivate(join(dataFolder(env), name)).trim();
      if (token !== '') return token;
    } catch (error) {
      if (error instanceof DataFolderError) throw error;
    }
  }
  return undefined;
}

/** Source of a token. Never an argument, because every user can read arguments in the process list. */
type TokenSource =
  | { kind: 'file'; path: string }
  | { kind: 'environment'; token: string }
  /** Token written to the data directory by the server on this machine. */
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
 * Reads the file at every use, so that running commands pick up a renewed token.
 *
 * @throws CliError
 */
function readTokenFile(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    const create = interludeCommand(['tokens', 'create', '--help']);
    const next = `name a readable file, or create a token (${create})`;
    throw new CliError(EXIT.failed, `the token file ${path} can’t be read (${errorCode(error)}); ${next}`);
  }
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new CliError(EXIT.failed, `the token file ${path} must contain one token and nothing else`);
}

/** Advice for a runner whose token the server refuses. */
export function tokenAdvice(source: TokenSource): string {
  const create = interludeCommand(['tokens', 'create', '--help']);
  switch (source.kind) {
    case 'file':
      return `write another token to ${source.path}, which is read again within 30 s (to create one: ${create})`;
    case 'environment':
      return `restart with another token in INTERLUDE_TOKEN (to create one: ${create})`;
    case 'machine':
      return `"npm start" creates one for the runners of its machine; elsewhere pass one with --token-file (to create one: ${create})`;
  }
}

const REQUEST_TIMEOUT_MS = 30_000;

/**
 * Sends a request for a command.
 *
 * @param endpoint with the owner's token
 * @throws CliError
 */
export async function requestJson<Answer>(
  endpoint: Endpoint,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<Answer> {
  const { url, token } = await endpoint();
  const pass = 'pass its owner’s (the file "token" in the data directory) with --token-file or INTERLUDE_TOKEN';
  if (token === undefined)
    throw new CliError(EXIT.failed, `no token for ${url}; start Interlude on this machine, or ${pass}`);
  let status: number;
  let text: string;
  try {
    const response = await requestServer(async () => ({ url, token }), path, {
      ...(method === 'GET' ? {} : { method }),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    status = response.status;
    text = await response.text();
  } catch (error) {
    const why = connectionMessage(error);
    throw new CliError(
      EXIT.failed,
      `${url} does not answer (${why}); start Interlude, or name another server with --url`,
    );
  }
  if (status === 200 || status === 201) return parseJson(text) as Answer;
  const error = errorIn(text);
  if (status === 401 && error !== null) {
    throw new CliError(EXIT.failed, `${url} refuses the token; ${pass}`);
  }
  throw new CliError(
    EXIT.failed,
    error === null ? `${url} is not an Interlude server (it answered ${status}); check the address` : error.message,
  );
}
