import { HOSTILE_CASES } from '../support/hostile-batches';
import { probeHealth } from '../support/latency-probes';
import { type BlockedTime, clearTables, longestBlock, sendHostile } from '../support/send-hostile';
import { inProcessServer, liveServer } from '../support/server-target';
import { longestBlockMs } from '../support/timing';
import { report } from './report';

/** How long each request and read at the limits of the protocol holds the event loop at most, and so everybody else. */
const server = await inProcessServer();
for (const hostile of HOSTILE_CASES) {
  await clearTables(server.database);
  const worst = longestBlock(await sendHostile(server, hostile, longestBlockMs));
  report(`longest hold, ${worst.what}`, worst.longestMs, 'ms', { atMost: 100 });
}
await server.close();

/** And how long a server that runs them one after the other takes at most to say that it is alive. */
const running = await liveServer();
const health = async (work: () => Promise<void>) => (await probeHealth(running.origin, work)).longestMs;
const all: BlockedTime[] = [];
for (const [at, hostile] of HOSTILE_CASES.entries())
  all.push(...(await sendHostile(running, hostile, health, `${at}-`)));
const worst = longestBlock(all);
report(`longest answer of /healthz, ${worst.what}`, worst.longestMs, 'ms', { atMost: 100 });
await running.close();
process.exit();
