import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { database, openDatabase } from '@/db/client';
import { endStreams } from '@/lib/fan-out/fan-out-of';
import { dumpDatabase } from './database';
import { FrameReader } from './frames';
import type { IngestTarget } from './ingest-target';
import { startLiveServer } from './live-server';

/** A whole server: every route under `app/`, in this process or as `next start` on loopback. */
export interface ServerTarget extends IngestTarget {
  /** Exactly these headers, but for the Host that belongs to the origin. */
  send(path: string, init?: { method?: string; headers?: Record<string, string>; body?: string }): Promise<Response>;
  /** With the bearer token. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Opens a stream with the bearer token. It must be there. */
  stream(query: string, headers?: Record<string, string>): Promise<FrameReader>;
  /** Ends it. Streams that are still open are left before, unless they are to see it. */
  close(options?: { keepStreams?: boolean }): Promise<void>;
}

type RouteModule = Record<string, ((request: Request, route: object) => Promise<Response>) | undefined>;

const APP = fileURLToPath(new URL('../../app', import.meta.url));
const TOKEN = 'a-token-for-tests-0123456789';

/**
 * The handlers as Next mounts them, found by their path as Next finds them. One to a process: they share a context.
 *
 * @param databaseUrl of a libSQL server with nothing in it; by default the database is a file
 */
export async function inProcessServer(databaseUrl?: string): Promise<ServerTarget> {
  const dataDir = await mkdtemp(join(tmpdir(), 'interlude-test-'));
  process.env.INTERLUDE_TOKEN = TOKEN;
  process.env.INTERLUDE_DATA_DIR = dataDir;
  if (databaseUrl !== undefined) {
    process.env.INTERLUDE_DATABASE_URL = databaseUrl;
    await (await openDatabase({ url: databaseUrl, migrates: true })).close();
  }
  const routes = await findRoutes();
  const origin = 'http://127.0.0.1:4319';
  return target(origin, TOKEN, {
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      for (const { pattern, load } of routes) {
        const match = pattern.exec(pathname);
        if (match === null) continue;
        const ids = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value ?? '')]);
        const handler = (await load())[request.method];
        if (handler === undefined) return new Response(null, { status: 405 });
        return handler(request, { params: Promise.resolve(Object.fromEntries(ids)) });
      }
      return new Response(null, { status: 404 });
    },
    dump: async () => dumpDatabase(await database()),
    close: async () => {
      endStreams();
      await (await database()).close();
      await rm(dataDir, { recursive: true, force: true });
    },
  });
}

/** The dashboard as a user starts it. */
export async function liveServer(): Promise<ServerTarget> {
  const server = await startLiveServer();
  return target(server.url, server.token, {
    fetch: sendOverHttp,
    dump: async () => {
      const opened = await openDatabase({ url: pathToFileURL(join(server.dataDir, 'interlude.db')).href });
      return dumpDatabase(opened).finally(() => opened.close());
    },
    close: () => server.stop(),
  });
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

/** Not `fetch`, which keeps Host, Origin and Sec-Fetch-Site for itself. Redirects are answers here. */
async function sendOverHttp(request: Request): Promise<Response> {
  const body = request.body === null ? null : Readable.fromWeb(request.body as never);
  return new Promise((resolve, reject) => {
    const headers = Object.fromEntries(request.headers);
    const sent = httpRequest(request.url, { method: request.method, headers, agent: false }, (answer) => {
      const status = answer.statusCode ?? 0;
      const pairs = Object.entries(answer.headersDistinct).flatMap(([name, values]) =>
        (values ?? []).map((value): [string, string] => [name, value]),
      );
      const hasBody = request.method !== 'HEAD' && status !== 204;
      const content = hasBody ? (Readable.toWeb(answer) as ReadableStream<Uint8Array>) : null;
      resolve(new Response(content, { status, headers: pairs }));
    });
    sent.on('error', reject);
    if (body === null) sent.end();
    else body.pipe(sent);
  });
}

async function findRoutes(): Promise<{ pattern: RegExp; load: () => Promise<RouteModule> }[]> {
  const files = (await readdir(APP, { recursive: true })).filter((file) => /(^|\/)route\.ts$/.test(file));
  // a name beats a parameter, and both beat the rest of a path
  const rank = (file: string) => file.replaceAll('[[...', '\uffff').replaceAll('[', '\ufffe');
  return files
    .sort((a, b) => (rank(a) < rank(b) ? -1 : 1))
    .map((file) => ({ pattern: patternOf(file), load: () => import(join(APP, file)) }));
}

function patternOf(file: string): RegExp {
  const parts = file.split('/').slice(0, -1);
  const source = parts
    .filter((part) => !part.startsWith('('))
    .map((part) => {
      if (part.startsWith('[[...')) return '(?:/.*)?';
      const name = /^\[(\w+)\]$/.exec(part)?.[1];
      return name === undefined ? `/${part}` : `/(?<${name}>[^/]+)`;
    });
  return new RegExp(`^${source.join('')}$`);
}

/** The paths of all routes under `/api`, each parameter filled with what is given for it, else with `id`. */
export async function apiPaths(ids: Record<string, string> = {}): Promise<string[]> {
  const files = (await readdir(join(APP, 'api'), { recursive: true })).filter((file) => file.endsWith('route.ts'));
  return files.map((file) => {
    const parts = file.split('/').slice(0, -1);
    const filled = parts.map((part) =>
      part.startsWith('[[')
        ? 'anything'
        : part.replace(/^\[(.*)\]$/, (_, name) => encodeURIComponent(ids[name] ?? 'id')),
    );
    return ['/api', ...filled].join('/');
  });
}
