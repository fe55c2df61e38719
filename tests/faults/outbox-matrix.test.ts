import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Fault, FaultServer, refusal } from '../support/fault-server';
import { tempDir } from '../support/temp-dir';
import { scaled } from '../support/timeouts';
import { startBundled } from '../support/typescript-programs';

/** More than one request of 500 records. */
const RECORDS = scaled(600, 6_000);
const TIMEOUT_MS = 250;

const FAULTS: Record<string, Fault> = {
  'resets the connection': { kind: 'reset' },
  'resets the connection after the commit': { kind: 'taken-then-reset' },
  'never answers': { kind: 'taken-then-silence' },
  'answers 503': { kind: 'answer', status: 503, body: { error: { code: 'unavailable', message: 'no' } } },
  'is behind a proxy that answers 409': {
    kind: 'answer',
    status: 409,
    body: { error: { code: 'conflict', message: 'a proxy prints no' } },
  },
  'answers 403': { kind: 'answer', ...refusal(403, 'forbidden', {}) },
  'answers 401': { kind: 'answer', ...refusal(401, 'unauthorized', {}) },
  'answers late': { kind: 'slow', ms: 150 },
  'breaks off its answer': { kind: 'taken-then-half-an-answer' },
};

describe.each(Object.keys(FAULTS))('a server that %s gets each record once', (name) => {
  const behaviour = () => FAULTS[name] as Fault;

  test('when the runner is killed in its first request', async () => {
    const { server, file } = await setUp(behaviour);
    const first = start(file, server.url);
    await server.until(() => server.requests.length > 0);
    await first.kill();
    await finish(server, file);
  });

  test('when the runner is killed after its first request', async () => {
    const { server, file } = await setUp(behaviour);
    const first = start(file, server.url);
    await first.prints(/^(delivered|held)$/);
    await first.kill();
    await finish(server, file);
  });
});

test('a server gets each record once when the runner is killed before its first request', async () => {
  const { server, file } = await setUp();
  const first = start(file, server.url);
  await first.prints(/^open$/);
  await first.kill();
  await finish(server, file);
});

test('a server that was down gets each record once when the runner is killed after a failed request', async () => {
  const { server, file } = await setUp();
  await server.close();
  const first = start(file, server.url);
  await first.prints(/^held$/);
  await first.kill();
  await server.listen();
  await finish(server, file);
});

async function setUp(behaviour: () => Fault = () => ({ kind: 'none' })) {
  const server = await FaultServer.start();
  onTestFinished(() => server.close());
  server.behaviour = behaviour;
  return { server, file: join(await tempDir(), 'outbox.db') };
}

/** Restarts the runner with a correct server. */
async function finish(server: FaultServer, file: string): Promise<void> {
  server.behaviour = () => ({ kind: 'none' });
  const second = start(file, server.url);
  expect(await second.ended).toBe(0);
  expect(server.ledger.messages).toEqual(Array.from({ length: RECORDS }, (_, index) => String(index + 1)));
  expect(server.ledger.lost).toBe(0);
}

function start(file: string, url: string) {
  const env = { ...process.env, WRITER_TIMEOUT_MS: String(TIMEOUT_MS) };
  const child = startBundled('tests/support/outbox-writer.ts', [file, url, String(RECORDS)], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit').then(([code, signal]) => signal ?? code);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  return {
    ended,
    async kill() {
      child.kill('SIGKILL');
      expect(await ended).toBe('SIGKILL');
    },
    /** Rejects if the runner exits first. */
    prints: (word: RegExp) =>
      new Promise<void>((resolve, reject) => {
        lines.on('line', (line) => {
          if (word.test(line)) resolve();
        });
        void ended.then((end) => reject(new Error(`the runner exited (${end}) before it printed ${word}`)));
      }),
  };
}
