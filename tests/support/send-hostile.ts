import type { Database } from '@/db/client';
import { HOSTILE_READS, type HostileCase } from './hostile-batches';
import type { ServerTarget } from './server-target';

/** Blocking caused by one request or read of a case. */
export interface BlockedTime {
  what: string;
  longestMs: number;
}

/** Returns the longest block. */
export function longestBlock(held: readonly BlockedTime[]): BlockedTime {
  return held.reduce((a, b) => (b.longestMs > a.longestMs ? b : a));
}

/**
 * Sends a case as a separate producer while a live reader watches, then runs all reads. Measures each step.
 *
 * @param prefix for agent and session ids on a shared server
 */
export async function sendHostile(
  server: ServerTarget,
  { name, requests, asks = () => [] }: HostileCase,
  measure: (work: () => Promise<void>) => Promise<number>,
  prefix = '',
): Promise<BlockedTime[]> {
  const held: BlockedTime[] = [];
  const step = async (what: string, work: () => Promise<void>) => {
    held.push({ what: `${name}: ${what}`, longestMs: await measure(work) });
  };
  const watched = `/api/v1/stream?topic=fleet&topic=session:${prefix}s&topic=logs:${prefix}a`;
  const leave = watch(await server.get(watched));
  let seq = 1;
  for (const [at, records] of requests().entries()) {
    const numbered = records.map((record, index) => named({ seq: seq + index, ...record }, prefix));
    const body = JSON.stringify({ producer: { id: `${prefix}${name}`, epoch: 1 }, records: numbered });
    const headers = { authorization: `Bearer ${server.token}` };
    await step(`request ${at + 1}`, async () => {
      const response = await server.send('/api/v1/events', { method: 'POST', headers, body });
      if (response.status !== 200) throw new Error(`${name}: ${response.status} ${await response.text()}`);
      await response.arrayBuffer();
    });
    seq += records.length;
  }
  for (const { route, body } of asks()) {
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
    await step(`POST ${route}`, async () => {
      const path = `/api/v1/sessions/${prefix}s/${route}`;
      const response = await server.send(path, { method: 'POST', headers, body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`${name}: ${route} ${response.status} ${await response.text()}`);
      await response.arrayBuffer();
    });
  }
  await leave();
  for (const of of HOSTILE_READS) {
    const path = of
      .replace(/\b(sessions\/|session:)s\b/g, `$1${prefix}s`)
      .replace(/\b(agents\/|logs:)a\b/g, `$1${prefix}a`);
    await step(`GET ${path}`, async () => {
      const response = await server.get(path);
      if (response.status >= 500) throw new Error(`${name}: ${path} ${response.status}`);
      if (path.includes('/stream')) await catchUp(response);
      else await response.arrayBuffer();
    });
  }
  return held;
}

function named(record: Record<string, unknown>, prefix: string): object {
  const { agentId, sessionId } = record;
  return {
    ...record,
    ...(agentId === undefined ? {} : { agentId: `${prefix}${agentId}` }),
    ...(sessionId === undefined ? {} : { sessionId: `${prefix}${sessionId}` }),
  };
}

/** Consumes a stream. @returns cancels it */
function watch(response: Response): () => Promise<void> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const reading = (async () => {
    while (!(await reader.read()).done);
  })();
  return async () => {
    await reader.cancel();
    await reading;
  };
}

/** Reads a stream until it is live, then cancels it. */
async function catchUp(response: Response): Promise<void> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  for (let end = ''; !end.includes('event: up-to-date'); ) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`the stream ended before it was live: ${end}`);
    end = (end + decoder.decode(value, { stream: true })).slice(-1_000);
  }
  await reader.cancel();
}

/** Empties a server's tables between cases. */
export async function clearTables({ reader, writes }: Database): Promise<void> {
  const { rows } = await reader.execute(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT GLOB '*_search*'
     AND name NOT LIKE '%migrations%' AND name <> 'compatibility'`,
  );
  await writes.run((transaction) => transaction.batch(rows.map(({ name }) => `DELETE FROM ${name}`)));
}
