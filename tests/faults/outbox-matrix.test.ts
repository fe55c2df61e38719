import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Fault, FaultServer } from '../support/fault-server';
import { refusal } from '../support/ledger';
import { tempDir } from '../support/temp-dir';
import { startTypescript } from '../support/typescript-process';

const RECORDS = 1_500;

/** `refused` is a server that does not listen. */
const FAULTS: Record<string, Fault | 'refused'> = {
  refused: 'refused',
  reset: { kind: 'reset' },
  'reset after it was taken': { kind: 'taken-then-reset' },
  timeout: { kind: 'taken-then-silence' },
  '5xx': { kind: 'answer', status: 503, body: { error: { code: 'unavailable', message: 'no' } } },
  '409': { kind: 'answer', status: 409, body: { error: { code: 'conflict', message: 'a proxy says no' } } },
  '403': { kind: 'answer', ...refusal(403, 'forbidden', {}) },
  '401': { kind: 'answer', ...refusal(401, 'unauthorized', {}) },
  slow: { kind: 'slow', ms: 150 },
  'half an answer': { kind: 'taken-then-half-an-answer' },
};

/** When the runner is killed: before its first request, while one is under way, when it has met the fault. */
const MOMENTS = ['before', 'during', 'after'] as const;

describe.each(Object.keys(FAULTS))('a server that is %s', (name) => {
  test.each(MOMENTS)('and a runner killed %s it lose nothing and double nothing', async (moment) => {
    const fault = FAULTS[name] as Fault | 'refused';
    const server = await FaultServer.start();
    onTestFinished(() => server.close());
    const file = join(await tempDir(), 'outbox.db');
    let isWell = false;
    server.behaviour = () => (isWell || fault === 'refused' ? { kind: 'none' } : fault);
    if (fault === 'refused') await server.close();

    const first = start(file, server.url);
    await first.opened;
    if (moment !== 'before') {
      // A server that refuses connections is met within a moment of having something to send.
      if (fault === 'refused') await pause(moment === 'during' ? 30 : 300);
      else await server.until(() => server.requests.length > 0);
      if (moment === 'after' && fault !== 'refused') await pause(400);
    }
    first.child.kill('SIGKILL');
    expect(await first.ended).toBe('SIGKILL');

    isWell = true;
    if (fault === 'refused') await server.listen();
    const second = start(file, server.url);
    expect(await second.ended).toBe(0);
    expect(server.ledger.messages).toEqual(Array.from({ length: RECORDS }, (_, at) => String(at + 1)));
    expect(server.ledger.lost).toBe(0);
  });
});

function start(file: string, url: string) {
  const env = { ...process.env, WRITER_TIMEOUT_MS: '250' };
  const child = startTypescript('tests/support/outbox-writer.ts', [file, url, String(RECORDS)], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const opened = new Promise<void>((resolve) => child.stdout?.once('data', () => resolve()));
  const ended = new Promise<number | string | null>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? code));
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, opened, ended };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
