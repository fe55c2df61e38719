import { type Client, createClient } from '@libsql/client';
import type { DatabaseOptions } from './client';
import { CommitTrain } from './commit-train';
import { followCounter, listenUrlOf, shareFollower } from './follow-counter';
import { ServerLease } from './lease';
import { ANSWER_MS, limitedFetch, MAINTENANCE_MS } from './limited-fetch';
import { NEWEST_MIGRATION } from './migrate';
import type { Opened } from './opened';
import type { BatchServer } from './optimistic-transaction';
import { OptimisticWrites } from './optimistic-writes';
import { retryWhileBusy } from './retry-while-busy';
import { type ServerAddress, serverAddress } from './server-address';
import { TransactionRequests } from './transaction-requests';
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
  const train = new CommitTrain(requests, { busyMs: BUSY_MS });
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
export async function openServer(options: DatabaseOptions): Promise<Opened> {
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
