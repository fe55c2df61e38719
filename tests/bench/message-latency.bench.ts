import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RunnerHost } from '@interlude/runner/host/runner-host';
import { Outbox } from '@interlude/runner/outbox/outbox';
import type { ClaudeSdk } from '@interlude/runner/sources/claude/claude-sdk';
import { ClaudeSource } from '@interlude/runner/sources/claude/claude-source';
import { LocalDashboard } from '../support/local-dashboard';
import { note, report } from './report';

/**
 * Latency from a dashboard message to the agent's input on loopback: request, command commit, stream, the runner's
 * persistence, SDK input. Only the SDK's query is fake; it reports when it receives the message.
 */
const WARM_UP = 20;
const MESSAGES = 200;
const REST_MS = 150;
const LIMIT_MS = 50;

const folder = await mkdtemp(join(tmpdir(), 'interlude-bench-'));
const dashboard = await LocalDashboard.start();
const [agentId, sessionId] = ['bench', 'bench-session'];

let given: (at: number) => void = () => {};
const sdk: ClaudeSdk = {
  query({ prompt }) {
    let close = () => {};
    const closed = new Promise<void>((resolve) => {
      close = resolve;
    });
    return {
      async *[Symbol.asyncIterator]() {
        const input = prompt[Symbol.asyncIterator]();
        for (;;) {
          const next = await Promise.race([input.next(), closed]);
          if (next === undefined || next.done) return;
          given(performance.now());
          yield { type: 'command_lifecycle', command_uuid: next.value.uuid, state: 'queued', uuid: randomUUID() };
          yield { type: 'command_lifecycle', command_uuid: next.value.uuid, state: 'completed', uuid: randomUUID() };
        }
      },
      interrupt: async () => undefined,
      stopTask: async () => {},
      close,
    };
  },
};

const host = await RunnerHost.open({
  about: { kind: 'claude' },
  journal: 'claude',
  meanwhile: 'the agent continues',
  openOutbox: (listeners) => Outbox.open(join(folder, 'outbox.db'), { agentId, ...listeners }),
  endpoint: dashboard.endpoint,
  level: undefined,
  dataDir: folder,
});
const { outbox } = host;
await host.start(
  (surroundings) =>
    new ClaudeSource({
      sdk,
      context: surroundings,
      memory: { sessionId, conversationId: randomUUID(), cwd: folder, pid: null, running: false },
      inFlight: [],
      env: { HOME: folder },
      answerWithinMs: 60_000,
    }),
);
host.stopSignal.addEventListener('abort', () => {
  throw new Error(host.stopSignal.reason);
});
await outbox.idle();

const times: number[] = [];
for (let index = 0; index < WARM_UP + MESSAGES; index += 1) {
  const arrival = new Promise<number>((resolve) => {
    given = resolve;
  });
  const typedAt = performance.now();
  await dashboard.request(`/sessions/${sessionId}/messages`, { text: `message ${index}`, clientId: String(index) });
  const ms = (await arrival) - typedAt;
  if (index >= WARM_UP) times.push(ms);
  // Messages are sequential: effects of the previous one have settled before the next.
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  await outbox.idle();
}
times.sort((a, b) => a - b);
note('message to input: p50', times[Math.floor(MESSAGES * 0.5)] ?? 0, 'ms');
report('message to input: p99', times[Math.floor(MESSAGES * 0.99)] ?? 0, 'ms', { atMost: LIMIT_MS });

await host.close(0, 1_000);
await dashboard.close();
await rm(folder, { recursive: true, force: true });
