import { database } from '@/db/client';
import { HOSTILE_READS, type HostileCase } from './hostile-batches';
import type { ServerTarget } from './server-target';

/** What one request or read of a case did to everybody else. */
export interface Held {
  what: string;
  longestMs: number;
}

/** Sends a case as an outbox of its own and then reads everything, each step measured by itself. */
export async function sendHostile(
  server: ServerTarget,
  { name, requests }: HostileCase,
  measure: (work: () => Promise<void>) => Promise<number>,
): Promise<Held[]> {
  const held: Held[] = [];
  const step = async (what: string, work: () => Promise<void>) => {
    held.push({ what: `${name}: ${what}`, longestMs: await measure(work) });
  };
  let seq = 1;
  for (const [at, records] of requests().entries()) {
    const numbered = records.map((record, index) => ({ seq: seq + index, ...record }));
    const body = JSON.stringify({ producer: { id: name, epoch: 1 }, records: numbered });
    const headers = { authorization: `Bearer ${server.token}` };
    await step(`request ${at + 1}`, async () => {
      const response = await server.send('/api/v1/events', { method: 'POST', headers, body });
      if (response.status !== 200) throw new Error(`${name}: ${response.status} ${await response.text()}`);
      await response.arrayBuffer();
    });
    seq += records.length;
  }
  for (const path of HOSTILE_READS) {
    if (path.includes('/stream')) continue;
    await step(`GET ${path}`, async () => {
      const response = await server.get(path);
      if (response.status >= 500) throw new Error(`${name}: ${path} ${response.status}`);
      await response.arrayBuffer();
    });
  }
  return held;
}

/** Empties the tables of this process's server, so that each case has them for itself. */
export async function forgetAll(): Promise<void> {
  const { reader, writes } = await database();
  const { rows } = await reader.execute(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'log_search%'
     AND name NOT LIKE '%migrations%'`,
  );
  await writes.run((transaction) => transaction.batch(rows.map(({ name }) => `DELETE FROM ${name}`)));
}
