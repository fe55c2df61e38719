import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { contextKind, type Database, databaseOptions, openDatabase } from '@/db/client';
import { serverFor } from '@/lib/server/create-server';
import { ROUTES } from '@/lib/server/routes';
import { createMigratedFile, dumpDatabase } from './database';
import { FrameReader } from './frames';
import type { IngestTarget } from './ingest-target';
import { startLiveServer, startNextServer } from './live-server';
import { bundleWorker } from './typescript-programs';
import { startWorkerd } from './workerd.mjs';

/** A complete server: in this process or live on loopback. */
export interface ServerTarget extends IngestTarget {
  /** Sends exactly these headers plus the origin's Host. */
  send(
    path: string,
    init?: { method?: string; headers?: Record<string, string>; body?: string | Uint8Array<ArrayBuffer> },
  ): Promise<Response>;
  /** Sends with the bearer token. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Opens a stream with the bearer token; throws unless the response is 200. */
  stream(query: string, headers?: Record<string, string>): Promise<FrameReader>;
  /** Stops the server. Cancels open streams first, unless they should observe the end. */
  close(options?: { keepStreams?: boolean }): Promise<void>;
}

const TOKEN = 'a-token-for-tests-0123456789';

export interface InProcessServer extends ServerTarget {
  readonly database: Database;
}

/**
 * Starts a complete server in this process, without HTTP.
 *
 * @param databaseUrl of an empty libSQL server; default: a file
 * @param settings additional environment variables
 */
export async function inProcessServer(
  databaseUrl?: string,
  settings: Record<string, string> = {},
): Promise<InProcessServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'interlude-test-'));
  const env = { ...settings, INTERLUDE_TOKEN: TOKEN, INTERLUDE_DATA_DIR: dataDir, INTERLUDE_DATABASE_URL: databaseUrl };
  if (databaseUrl === undefined) await createMigratedFile(join(dataDir, 'interlude.db'));
  else await (await openDatabase({ ...databaseOptions(env), migrates: true })).close();
  const server = serverFor(env);
  const { database } = await server.parts();
  const served = target('http://127.0.0.1:4319', TOKEN, {
    fetch: server.handle,
    dump: () => dumpDatabase(database),
    close: async () => {
      await server.close();
      if (contextKind(env) === 'perRequest') await database.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  });
  return { ...served, database };
}

/** Starts the dashboard as a user does. */
export async function liveServer(): Promise<ServerTarget> {
  const server = await startLiveServer();
  return target(server.url, server.token, {
    fetch: sendOverHttp,
    dump: () => dumpFolder(server.dataDir),
    close: () => server.stop(),
  });
}

/** Starts `next start` without the front door. */
export async function nextServer(): Promise<ServerTarget> {
  const server = await startNextServer(TOKEN);
  return target(server.url, server.token, {
    fetch: sendOverHttp,
    dump: () => dumpFolder(server.dataDir),
    close: () => server.stop(),
  });
}

/** The handlers in workerd, with an empty libSQL server. */
export interface WorkerServer extends ServerTarget {
  /** workerd's error output. */
  said(): string;
}

/**
 * @param rules `strict`: no request may await another request's work
 * @param settings additional environment variables
 */
export async function workerServer(
  databaseUrl: string,
  rules: 'today' | 'strict',
  settings: Record<string, string> = {},
): Promise<WorkerServer> {
  const env = {
    INTERLUDE_TOKEN: TOKEN,
    INTERLUDE_DATABASE_URL: databaseUrl,
    INTERLUDE_CONTEXT: 'per-request',
    ...settings,
  };
  const database = await openDatabase({ ...databaseOptions(env), migrates: true });
  const { code } = await bundleWorker();
  const worker = await startWorkerd(code, env, rules);
  const served = target(worker.url, TOKEN, {
    fetch: sendOverHttp,
    dump: () => dumpDatabase(database),
    close: async () => {
      await worker.stop();
      await database.close();
    },
  });
  return { ...served, said: () => worker.said };
}

async function dumpFolder(dataDir: string): Promise<Record<string, unknown[]>> {
  const opened = await openDatabase({ url: pathToFileURL(join(dataDir, 'interlude.db')).href });
  return dumpDatabase(opened).finally(() => opened.close());
}

function target(
  origin: string,
  token: string,
  base: { fetch(request: Request): Promise<Response>; dump: IngestTarget['dump']; close(): Promise<void> },
): ServerTarget {
  const readers: FrameReader[] = [];
  const send: ServerTarget['send'] = (path, { method = 'GET', headers = {}, body } = {}) =>
    base.fetch(new Request(`${origin}${path}`, { method, headers: { host: new URL(origin).host, ...headers }, body }));
  const get: ServerTarget['get'] = (path, headers = {}) =>
    send(path, { headers: { authorization: `Bearer ${token}`, ...headers } });
  return {
    ...base,
    origin,
    token,
    send,
    get,
    stream: async (query, headers) => {
      const response = await get(`/api/v1/stream?${query}`, headers);
      if (response.status !== 200 || response.body === null) throw new Error(await response.text());
      const reader = new FrameReader(response.body);
      readers.push(reader);
      return reader;
    },
    close: async ({ keepStreams = false } = {}) => {
      if (!keepStreams) await Promise.all(readers.map((reader) => reader.cancel().catch(() => {})));
      await base.close();
    },
  };
}

/** Doesn't use `fetch`, which forbids Host, Origin and Sec-Fetch-Site. Doesn't follow redirects. */
async function sendOverHttp(request: Request): Promise<Response> {
  const body = request.body === null ? null : Readable.fromWeb(request.body as never);
  return new Promise((resolve, reject) => {
    const headers = Object.fromEntries(request.headers);
    const sent = httpRequest(request.url, { method: request.method, headers, agent: false }, (response) => {
      const status = response.statusCode ?? 0;
      const pairs = Object.entries(response.headersDistinct).flatMap(([name, values]) =>
        (values ?? []).map((value): [string, string] => [name, value]),
      );
      const hasBody = request.method !== 'HEAD' && status !== 204 && status !== 304;
      const content = hasBody ? (Readable.toWeb(response) as ReadableStream<Uint8Array>) : null;
      resolve(new Response(content, { status, headers: pairs }));
    });
    sent.on('error', reject);
    if (body === null) sent.end();
    else body.pipe(sent);
  });
}

/** Paths of all API routes and of one unknown route. Parameters are filled from `ids`, else with `id`. */
export function apiPaths(ids: Record<string, string> = {}): string[] {
  const patterns = new Set(ROUTES.map(({ pattern }) => pattern).filter((pattern) => pattern.startsWith('/api/')));
  const fill = (_: string, name: string) => encodeURIComponent(ids[name] ?? 'id');
  return [...[...patterns].map((pattern) => pattern.replace(/:(\w+)/g, fill)), '/api/anything'];
}
