import { existsSync, readFileSync } from 'node:fs';
import type { NewToken, NewTokenRequest } from '@interlude/protocol/access';
import type { OpenApiDocument } from '@interlude/protocol/open-api';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CONSOLE, CRON_SECRET, METRICS_TOKEN, requestLive } from '@/tests/support/busy-agent';
import { scale, scaled } from '@/tests/support/timeouts';
import { startTypescript } from '@/tests/support/typescript-programs';
import type { RequestOptions } from '../../support/access-stage';
import { killOnExit } from '../../support/kill-on-exit.mjs';
import { LatencyProbe } from '../../support/latency-probes';
import { type LiveServer, startLiveServer } from '../../support/live-server';
import type { MalformedOrder, MalformedReport } from '../../support/malformed-clients';
import { seededRandom } from '../../support/random';
import { expectWithin } from '../../support/timing';

/**
 * Sends requests mutated from the server's OpenAPI document over keep-alive connections while another client sends
 * ordinary requests. `INTERLUDE_TEST_SCALE=soak` sends a million.
 */
const REQUESTS = scaled(3_000, 1_000_000);
const CONNECTIONS = 16;
const { seed } = seededRandom('malformed');

/** Maximum latency of the other client on an idle machine. */
const OTHERS_WAIT_MS = 100;
const MOST_GROWTH_MIB = 500;
const PROGRESS_EVERY = 50_000;

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer({
    env: { INTERLUDE_EMBED_ORIGINS: CONSOLE, CRON_SECRET, INTERLUDE_METRICS_TOKEN: METRICS_TOKEN },
  });
});
afterAll(() => server.stop());

const ask = <Model>(path: string, sent?: RequestOptions) => requestLive<Model>(server, path, sent);

const token = async (made: Partial<NewTokenRequest>) =>
  (await ask<NewToken>('/tokens', { method: 'POST', body: made })).token;

test('the server answers malformed requests without an internal error or crash', async () => {
  const made = async (role: NewTokenRequest['role']) => `Bearer ${await token({ role })}`;
  const order: MalformedOrder = {
    url: server.url,
    document: await ask<OpenApiDocument>('/openapi.json'),
    tokens: {
      admin: await made('admin'),
      operator: await made('operator'),
      viewer: await made('viewer'),
      issuer: await made('issuer'),
      runner: `Bearer ${await token({ role: 'runner', anyAgent: true })}`,
      timer: `Bearer ${CRON_SECRET}`,
      monitor: `Bearer ${METRICS_TOKEN}`,
      unknown: 'Bearer a-token-that-is-wrong',
    },
    seed,
    count: REQUESTS,
    connections: CONNECTIONS,
  };
  const probe = new LatencyProbe(server, {
    runner: await token({ role: 'runner', agent: 'probe' }),
    viewer: await token({ role: 'viewer' }),
  });
  await probe.warmUp();
  const before = memoryMiB();
  let most = before;
  const figuresOf = ({ sent, statuses }: MalformedReport) =>
    [
      `${sent} malformed requests, seed ${seed}: ${JSON.stringify(statuses)}`,
      ...probe.figures,
      `memory: ${before.toFixed(0)} MiB before, ${memoryMiB().toFixed(0)} MiB now, ${most.toFixed(0)} MiB at most`,
      '',
    ].join('\n');
  const attack = sendMalformed(order, figuresOf);
  let isOver = false;
  const beside = probe.live(() => {
    most = Math.max(most, memoryMiB());
    return isOver;
  });
  const over = attack.finally(() => {
    isOver = true;
  });
  const [report] = await Promise.all([over, beside]);

  process.stdout.write(figuresOf(report));
  expect(report.failures).toEqual([]);
  expect(report.sent).toBe(REQUESTS);
  expect(server.output).not.toMatch(/unexpected error|\n\s+at /);
  expect(most - before).toBeLessThan(MOST_GROWTH_MIB);
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  if (scale === 'soak') expectWithin(probe.worstMs, OTHERS_WAIT_MS);
});

/** @param figuresOf progress figures for a long run */
function sendMalformed(
  order: MalformedOrder,
  figuresOf: (report: MalformedReport) => string,
): Promise<MalformedReport> {
  const child = killOnExit(
    startTypescript('tests/support/malformed-clients.ts', [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }),
    null,
  );
  return new Promise((resolve, reject) => {
    let last: MalformedReport | null = null;
    child.on('message', (report: MalformedReport) => {
      // a long run prints findings immediately
      for (const failure of report.failures.slice(last?.failures.length ?? 0)) process.stdout.write(`${failure}\n`);
      last = report;
      if (report.sent % PROGRESS_EVERY === 0 && !report.isDone) process.stdout.write(figuresOf(report));
    });
    child.once('exit', (code) => {
      if (last?.isDone) resolve(last);
      else
        reject(
          new Error(`the clients exited with ${code} after ${last?.sent ?? 0} requests; server: ${server.output}`),
        );
    });
    child.send(order);
  });
}

/** The server's resident memory; 0 without /proc. */
function memoryMiB(): number {
  const file = `/proc/${server.pid}/status`;
  const status = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}
