import { abortableFetch } from '@interlude/protocol/abortable-fetch';
import { type Client, createClient } from '@libsql/client';
import { CommitBatcher, TransactionRequests } from './commit-batcher';
import { retryWhileBusy } from './database-error';
import type { DatabaseOptions, Driver } from './driver';
import { followCounter, listenUrlOf, shareFollower } from './follow-counter';
import { ServerLease } from './lease';
import { NEWEST_MIGRATION } from './migrate';
import type { BatchServer } from './optimistic-transaction';
import { OptimisticWrites } from './optimistic-writes';
import type { TransactionSource } from './write-queue';

/** Longer than a server keeps a transaction open between two statements. */
const BUSY_MS = 10_000;

/** A server, with the operations that writers need. */
export interface Connection {
  client: Client;
  server: BatchServer & TransactionSource;
  close(): void;
}

/** @param answerMs timeout of a request */
export function connect({ url, authToken }: ServerAddress, answerMs = ANSWER_MS): Connection {
  const client = createClient({ url, authToken, fetch: limitedFetch(answerMs) });
  // Responses to writes, and to the reads that plan them, are small.
  const plainFetch = limitedFetch(answerMs, 'identity');
  const planning = createClient({ url, authToken, fetch: plainFetch });
  const requests = new TransactionRequests(url, authToken, plainFetch);
  const batcher = new CommitBatcher(requests, { busyMs: BUSY_MS });
  const server: BatchServer & TransactionSource = {
    transaction: (mode) => client.transaction(mode),
    batch: (statements, mode) =>
      mode === 'write'
        ? batcher.run(statements, 'COMMIT')
        : retryWhileBusy(() => planning.batch(statements, mode), BUSY_MS),
    trial: (statements) => batcher.run(statements, 'ROLLBACK'),
  };
  const close = () => {
    client.close();
    planning.close();
    requests.close();
  };
  return { client, server, close };
}

/** Opens a database on a libSQL server, over HTTP. */
export async function openServer(options: DatabaseOptions): Promise<Driver> {
  const { isAlone = false, migrates = false } = options;
  const address = serverAddress(options.url, options.authToken);
  const { url, authToken } = address;
  const { client, server, close } = connect(address, migrates ? MAINTENANCE_MS : ANSWER_MS);
  const counter = async () => Number((await client.execute('SELECT position FROM counter')).rows[0]?.position ?? 0);
  return {
    reader: client,
    tail: client,
    transactions: client,
    writesTo: (damage) => new OptimisticWrites(server, { hasLines: !isAlone, version: NEWEST_MIGRATION }, damage),
    follow: shareFollower((onMove) => followCounter({ listenUrl: listenUrlOf(url), authToken, counter }, onMove)),
    lease: (work) => new ServerLease(server, work),
    file: null,
    path: null,
    checkpoint: async () => {},
    isIntact: null,
    settle: async () => {},
    close,
  };
}

interface ServerAddress {
  /** `http:` or `https:`. */
  url: string;
  authToken: string | undefined;
}

/**
 * Parses an address as libSQL's clients do: `libsql:`, `ws:` and `wss:` mean the same server as `http:` and `https:`,
 * and `?authToken=` and `?tls=0` are settings. Other settings stay in the URL, so the client refuses them.
 *
 * @throws TypeError for an invalid address
 */
export function serverAddress(address: string, authToken: string | undefined): ServerAddress {
  const url = new URL(address);
  const { searchParams } = url;
  const token = searchParams.get('authToken') ?? authToken;
  const isPlain = url.protocol === 'libsql:' ? searchParams.get('tls') === '0' : /^(http|ws):$/.test(url.protocol);
  if (/^[01]$/.test(searchParams.get('tls') ?? '')) searchParams.delete('tls');
  searchParams.delete('authToken');
  return { url: url.href.replace(/^(libsql|wss?):/, isPlain ? 'http:' : 'https:'), authToken: token };
}

/** Longer than a server's transaction limit, and than any of our requests takes. */
const ANSWER_MS = 10_000;
/** For work on whole tables: migrations, copies, checks. */
export const MAINTENANCE_MS = 15 * 60_000;

/**
 * `fetch` with a timeout, for a libSQL server. A connection can die silently, on a broken line or behind a gateway, and
 * would block its request and all queued ones for minutes.
 *
 * @param encoding of responses, because compressing small ones costs more than it saves; null leaves the choice to
 * client and server
 * @returns responses with a complete body. Invalid JSON fails like `fetch`, since the outcome is just as unknown
 * @throws TypeError like `fetch`; on a timeout, its cause has the code `ETIMEDOUT`
 */
function limitedFetch(
  answerMs = ANSWER_MS,
  encoding: 'identity' | null = null,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const signal = AbortSignal.timeout(answerMs);
    if (encoding !== null) request.headers.set('accept-encoding', encoding);
    try {
      const { body, status, statusText, headers } = await abortableFetch(request, { signal });
      return new JsonResponse(body === null ? null : await new Response(body).arrayBuffer(), {
        status,
        statusText,
        headers,
      });
    } catch (error) {
      // An incomplete body counts as no response.
      if (!signal.aborted) throw new TypeError('fetch failed', { cause: error });
      const cause = Object.assign(new Error(`no answer within ${answerMs} ms`, { cause: error }), {
        code: 'ETIMEDOUT',
      });
      throw new TypeError('fetch failed', { cause });
    }
  };
}

/** Parses the JSON here: in libSQL's client, invalid JSON would become a bare SyntaxError. */
class JsonResponse extends Response {
  override async json(): Promise<unknown> {
    let value: unknown;
    try {
      value = await super.json();
    } catch (cause) {
      throw new TypeError('fetch failed', { cause });
    }
    if (value !== null && typeof value === 'object') return value;
    throw new TypeError('fetch failed', {
      cause: new TypeError(`the server answered ${typeof value} instead of an object`),
    });
  }
}
