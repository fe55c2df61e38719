import type { Client, InStatement } from '@libsql/client';
import { inTurns } from './in-turns';

/** A database file to read from: a batch of reads is one snapshot, and others get their turns between its statements. */
export function localReader(client: Client): Client {
  const batch: Client['batch'] = async (statements) => {
    const snapshot = inTurns(await client.transaction('read'));
    try {
      return await snapshot.batch(statements as InStatement[]);
    } finally {
      snapshot.close();
    }
  };
  return Object.assign(client, { batch });
}
