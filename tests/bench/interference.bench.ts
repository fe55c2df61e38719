import { HOSTILE_CASES } from '../support/hostile-batches';
import { probeHealth } from '../support/latency-probes';
import { type BlockedTime, clearTables, longestBlock, sendHostile } from '../support/send-hostile';
import { inProcessServer, liveServer } from '../support/server-target';
import { longestBlockMs } from '../support/timing';
import { report } from './report';

/** Longest block of the event loop by requests and reads at the protocol's limits. */
const server = await inProcessServer();
for (const hostile of HOSTILE_CASES) {
  await clearTables(server.database);
  const worst = longestBlock(await sendHostile(server, hostile, longestBlockMs));
  report(`interference: longest event loop block, ${worst.what}`, worst.longestMs, 'ms', { atMost: 100 });
}
await server.close();

/** Slowest `/healthz` of a server that processes them one after the other. */
const running = await liveServer();
const health = async (work: () => Promise<void>) => (await probeHealth(running.origin, work)).longestMs;
const all: BlockedTime[] = [];
for (const [index, hostile] of HOSTILE_CASES.entries())
  all.push(...(await sendHostile(running, hostile, health, `${index}-`)));
const worst = longestBlock(all);
report(`interference: slowest /healthz, ${worst.what}`, worst.longestMs, 'ms', { atMost: 100 });
await running.close();
process.exit();
