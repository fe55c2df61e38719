import { existsSync, readFileSync } from 'node:fs';
import { REPORT_EVERY_MS } from '@interlude/runner/host/status-report';
import { ingest, inProcessTarget } from '../support/ingest-target';
import { report } from './report';

/**
 * Cost of a hundred idle runners that each send an unchanged status every ten seconds. Handlers run with a simulated
 * clock, so an hour passes in seconds; the bytes are those written to the database.
 */
const RUNNERS = 100;
const ROUNDS = 60;
const WARM_UP_ROUNDS = 6;

let now = 1_795_170_000_000;
const target = await inProcessTarget(() => now);
let seq = 0;
for (let round = 0; round < WARM_UP_ROUNDS; round += 1) await allReport();
const before = { written: bytesWritten(), cpu: process.cpuUsage() };
for (let round = 0; round < ROUNDS; round += 1) await allReport();
const { user, system } = process.cpuUsage(before.cpu);
const seconds = (ROUNDS * REPORT_EVERY_MS) / 1_000;
const written = bytesWritten();
if (written !== null && before.written !== null) {
  const rate = (written - before.written) / 1_024 / seconds;
  report(`${RUNNERS} idle runners: written`, rate, 'KiB/s', { atMost: 168 });
}
report(`${RUNNERS} idle runners: share of a core`, (user + system) / 1e4 / seconds, '%', { atMost: 4 });
await target.close();

/** Sequential, as they arrive: no two share a transaction. */
async function allReport(): Promise<void> {
  seq += 1;
  for (let runner = 0; runner < RUNNERS; runner += 1) {
    now += REPORT_EVERY_MS / RUNNERS;
    await ingest(target, [reportOf(runner)], 1, `runner-${runner}`);
  }
}

function reportOf(runner: number) {
  return {
    seq,
    kind: 'status',
    agentId: `project-${runner}@machine`,
    sessionId: `session-${runner}`,
    occurredAt: now,
    status: {
      kind: 'claude',
      source: 'sdk',
      cwd: `/home/somebody/projects/project-${runner}`,
      runner: { id: `e1f0c1c2-0000-4000-8000-${runner}`, pid: 4_000 + runner, startedAt: 1_795_160_000_000 },
      everyMs: REPORT_EVERY_MS,
      process: { state: 'running', pid: 5_000 + runner, exitCode: null },
      openTurnId: null,
      tasks: [],
      requests: [],
      pendingMessages: 0,
      outbox: { depth: 0, oldestAgeMs: null, poisoned: 0, lost: 0 },
      logLevel: 'info',
      logSwitch: { by: null, until: null, base: 'info' },
    },
  };
}

/** Bytes this process wrote to files; null if the system doesn't report it. */
function bytesWritten(): number | null {
  const file = '/proc/self/io';
  if (!existsSync(file)) return null;
  return Number(/^wchar: (\d+)$/m.exec(readFileSync(file, 'utf8'))?.[1]);
}
