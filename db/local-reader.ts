import type { Client, InStatement, ResultSet } from '@libsql/client';
import { Pace } from './next-turn';

/**
 * A database file to read from: a batch of reads is one snapshot, and others get their turns between its statements,
 * each of which is answered on the event loop itself.
 */
export function localReader(client: Client): Client {
  const batch: Client['batch'] = async (statements) => {
    const pace = new Pace();
    const snapshot = await client.transaction('read');
    try {
      const results: ResultSet[] = [];
      for (const statement of statements) {
        results.push(await snapshot.execute(statement as InStatement));
        if (pace.isDue) await pace.rest();
      }
      return results;
    } finally {
      snapshot.close();
    }
  };
  return Object.assign(client, { batch });
}
