import { type Client, createClient } from '@libsql/client';
import type { DatabaseOptions } from './client';
import { CommitBatcher, TransactionRequests } from './commit-batcher';
import { retryWhileBusy } from './database-error';
import type { Driver } from './driver';
import { followCounter, listenUrlOf, shareFollower } from './follow-counter';
import { ServerLease } from './lease';
import { NEWEST_MIGRATION } from './migrate';
import type { BatchServer } from './optimistic-transaction';
import { OptimisticWrites } from './optimistic-writes';
import type { TransactionSource } from './write-queue';

/** How long somebody may lock out all others: longer than a server lets a transaction wait for its next statement. */
const BUSY_MS = 10_000;

/** A server as what writes to it needs it. */
export interface Connection {
  client: Client;
  server: BatchServer & TransactionSource;
  close(): void;
}

/** @param answerMs how long the server may take for an answer */
export function connect({ url, authToken }: ServerAddress, answerMs = ANSWER_MS): Connection {
  const client = createClient({ url, authToken, fetch: limitedFetch(answerMs) });
  // What is written is answered in a few words, and so is what is read for it.
  const plainly = limitedFetch(answerMs, 'identity');
  const planning = createClient({ url, authToken, fetch: plainly });
  const requests = new TransactionRequests(url, authToken, plainly);
  const train = new CommitBatcher(requests, { busyMs: BUSY_MS });
  const server: BatchServer & TransactionSource = {
    transaction: (mode) => client.transaction(mode),
    batch: (statements, mode) =>
      mode === 'write'
        ? train.run(statements, 'COMMIT')
        : retryWhileBusy(() => planning.batch(statements, mode), BUSY_MS),
    trial: (statements) => train.run(statements, 'ROLLBACK'),
  };
  const close = () => {
    client.close();
    planning.close();
    requests.close();
  };
  return { client, server, close };
}

/** A database at a libSQL server, over HTTP. */
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
    isWhole: null,
    settle: async () => {},
    close,
  };
}

/** Where a libSQL server is, as HTTP has it. */
interface ServerAddress {
  /** `http:` or `https:`. */
  url: string;
  authToken: string | undefined;
}

/**
 * Reads what libSQL's clients take as the address of a server: `libsql:`, `ws:` and `wss:` name the same one as `http:` and
 * `https:`, and `?authToken=` and `?tls=0` are settings. Other settings are left in it, for the client to refuse.
 *
 * @throws TypeError for what is no address
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

/**
 * `fetch` for a libSQL server that must answer in time. A connection can die without a word, as on a line that is cut or
 * behind a gateway that forgets it; whoever waited for an answer on it would wait for minutes, and all behind them too.
 * What a gateway says in the place of the server is no answer either.
 */

/** Longer than a server lets a transaction last, and than anything we ask takes. */
const ANSWER_MS = 10_000;
/** What rewrites or reads a whole table takes longer: a migration, a copy, a check. */
export const MAINTENANCE_MS = 15 * 60_000;

/**
 * @param encoding how answers come. To compress small ones costs both sides more than it saves the line between them;
 *   null leaves it to them
 * @returns answers whose body has come, too. Reading one as JSON that isn't any fails as `fetch` does: nobody knows what
 *   became of the request
 * @throws TypeError as `fetch` does, with the code `ETIMEDOUT` in its cause
 */
function limitedFetch(
  answerMs = ANSWER_MS,
  encoding: 'identity' | null = null,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const signal = AbortSignal.timeout(answerMs);
    if (encoding !== null) request.headers.set('accept-encoding', encoding);
    try {
      const { body, status, statusText, headers } = await fetch(request, { signal });
      return new Answer(body === null ? null : await new Response(body).arrayBuffer(), { status, statusText, headers });
    } catch (error) {
      // a body that breaks off is no other failure than an answer that never comes
      if (!signal.aborted) throw new TypeError('fetch failed', { cause: error });
      const cause = Object.assign(new Error(`no answer within ${answerMs} ms`, { cause: error }), {
        code: 'ETIMEDOUT',
      });
      throw new TypeError('fetch failed', { cause });
    }
  };
}

/** An answer whose JSON is read once, by libSQL's client: it may be large. What isn't any would be a bare SyntaxError there. */
class Answer extends Response {
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
