import { createClient } from '@libsql/client';
import type { DatabaseOptions } from './client';
import { followCounter, listenUrlOf } from './follow-counter';
import { Lease } from './lease';
import type { Opened } from './opened';
import type { BatchServer } from './optimistic-transaction';
import { OptimisticWrites } from './optimistic-writes';
import { TrialBatches } from './trial-batch';

/** A database at a libSQL server, over HTTP. */
export async function openServer({ url, authToken, isAlone = false }: DatabaseOptions): Promise<Opened> {
  const client = createClient({ url, authToken });
  const trials = new TrialBatches(url, authToken);
  const counter = async () => Number((await client.execute('SELECT position FROM counter')).rows[0]?.position ?? 0);
  const server: BatchServer = {
    batch: (statements, mode) => client.batch(statements, mode),
    trial: (statements) => trials.run(statements),
  };
  return {
    reader: client,
    tail: client,
    transactions: client,
    writesTo: (damage) => new OptimisticWrites(server, { hasLines: !isAlone }, damage),
    follow: (onMove) => followCounter({ listenUrl: listenUrlOf(url), authToken, counter }, onMove),
    lease: (work) => {
      const lease = new Lease(server, work);
      return () => lease.isHeld();
    },
    file: null,
    path: null,
    checkpoint: async () => {},
    isWhole: null,
    settle: async () => {},
    close: () => {
      client.close();
      trials.close();
    },
  };
}
