import { ingest, record } from '../support/ingest-target';
import { startLibsqlServer } from '../support/libsql-server.mjs';
import { type InProcessServer, inProcessServer } from '../support/server-target';
import { unreliableProxy } from '../support/test-proxies';
import { note, report } from './report';

/**
 * Commits on a libSQL server 30 ms away by two instances: small requests of many runners that each wait for the
 * response.
 */
const ONE_WAY_MS = 15;
const SECONDS = 10;

const libsql = await startLibsqlServer();
const line = await unreliableProxy(libsql.url, ONE_WAY_MS);
const servers = [await inProcessServer(libsql.url), await inProcessServer(line.origin)];
await servers.shift()?.close();
servers.push(await inProcessServer(line.origin));

let runs = 0;
for (const writers of [1, 8, 24]) {
  const times = await write(servers, writers, SECONDS * 1_000);
  const perSecond = times.length / SECONDS;
  const sorted = times.toSorted((a, b) => a - b);
  if (writers === 24) report('commits 30 ms away: 24 writers', perSecond, '/s', { atLeast: 120 });
  else note(`commits 30 ms away: ${writers} writer${writers === 1 ? '' : 's'}`, perSecond, '/s');
  note(`commits 30 ms away: ${writers}, p50`, sorted[sorted.length >> 1] ?? 0, 'ms');
  note(`commits 30 ms away: ${writers}, p99`, sorted[Math.floor(sorted.length * 0.99)] ?? 0, 'ms');
}
note('commits 30 ms away: database requests per commit', line.requests / runs, '');

for (const server of servers) await server.close();
await line.close();
await libsql.stop();

async function write(to: readonly InProcessServer[], writers: number, ms: number): Promise<number[]> {
  const times: number[] = [];
  const until = performance.now() + ms;
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      const id = `writer-${writers}-${writer}`;
      const target = to[writer % to.length] as InProcessServer;
      for (let seq = 1; performance.now() < until; seq += 5) {
        const begunAt = performance.now();
        const records = Array.from({ length: 5 }, (_, index) =>
          record(seq + index, {
            agentId: id,
            sessionId: id,
            event: { type: 'CUSTOM', name: 'step', value: { at: seq + index } },
          }),
        );
        await ingest(target, records, 1, id);
        times.push(performance.now() - begunAt);
        runs += 1;
      }
    }),
  );
  return times;
}
