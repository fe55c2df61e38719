import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decide, poisonedIn, readOutbox } from '@interlude/runner/outbox/operations';
import { Outbox, type OutgoingRecord } from '@interlude/runner/outbox/outbox';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { runCli } from '../support/cli';
import { callCli } from '../support/cli-in-process';
import { InstantClock } from '../support/clocks';
import { FaultServer, refusal } from '../support/fault-server';
import { tempDir } from '../support/temp-dir';

let server: FaultServer;
let dataDir: string;
let file: string;

beforeEach(async () => {
  server = await FaultServer.start();
  dataDir = await tempDir();
  mkdirSync(join(dataDir, 'outboxes'));
  file = join(dataDir, 'outboxes', 'agent-1.db');
});
afterEach(() => server.close());

const log = (message: string): OutgoingRecord => ({
  kind: 'log',
  agentId: 'agent-1',
  occurredAt: Date.now() - 60_000,
  log: { level: 'info', component: 'test', message },
});

async function open(url = server.url): Promise<Outbox> {
  const outbox = await Outbox.open(file, {
    producerId: 'producer-1',
    agentId: 'agent-1',
    endpoint: async () => ({ url, token: undefined }),
    clock: new InstantClock(),
    maxBatchRows: 1,
  });
  onTestFinished(async () => void (await outbox.stop()));
  return outbox;
}

/** An outbox with records 1 to 5. The server has refused 2 and 4. */
async function withRefused(): Promise<Outbox> {
  const outbox = await open();
  const bad = refusal(400, 'malformed', {});
  server.behaviour = ({ seqs }) => {
    const isRefused = seqs.some((seq) => (seq === 2 || seq === 4) && !declared.has(seq));
    for (const seq of seqs) declared.add(seq);
    return isRefused ? { kind: 'answer', ...bad } : { kind: 'none' };
  };
  const declared = new Set<number>();
  await outbox.enqueue(['1', '2', '3', '4', '5'].map(log));
  await outbox.idle();
  return outbox;
}

// SQLite locks a file per process, so the command runs in its own process beside an open outbox.
const cli = (...args: string[]) => runCli(['outbox', ...args], { INTERLUDE_DATA_DIR: dataDir });
const cliAlone = (...args: string[]) => callCli(['outbox', ...args], { INTERLUDE_DATA_DIR: dataDir });

describe('rejected records', () => {
  test('are listed, sent again on demand, and arrive once', async () => {
    const outbox = await withRefused();
    expect(server.ledger.messages).toEqual(['1', '3', '5']);
    const [two, four] = await poisonedIn(file);
    expect([two, four]).toMatchObject([
      { seq: 2, state: 'kept' },
      { seq: 4, state: 'kept' },
    ]);
    expect(await decide(file, [two?.id as number, 99], 'redrive', 1_000)).toEqual({
      changed: [two?.id],
      refused: [{ id: 99, why: 'there is no such record' }],
    });
    expect(await outbox.queueRedrives()).toBe(1);
    expect(await outbox.queueRedrives()).toBe(0);
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['1', '3', '5', '2']);
    expect((await poisonedIn(file))[0]).toMatchObject({ state: 'redriven' });
    expect((await decide(file, [two?.id as number], 'redrive', 1_000)).refused[0]?.why).toMatch(
      /already been sent again/,
    );
    expect(await outbox.facts()).toEqual({ depth: 0, oldestAgeMs: null, poisoned: 1 });
  });

  test('are sent again by the next outbox when none has the file open', async () => {
    await (await withRefused()).stop();
    await decide(file, 'all', 'redrive', Date.now());
    const next = await open();
    await next.idle();
    expect(server.ledger.messages).toEqual(['1', '3', '5', '2', '4']);
  });

  test('are kept when discarded, no longer counted, and can still be sent', async () => {
    const outbox = await withRefused();
    expect((await decide(file, 'all', 'discarded', 7)).changed).toHaveLength(2);
    expect(await outbox.facts()).toMatchObject({ poisoned: 0 });
    expect(await poisonedIn(file)).toMatchObject([{ state: 'discarded', decidedAt: 7 }, { state: 'discarded' }]);
    expect((await decide(file, 'all', 'discarded', 8)).changed).toEqual([]);
    const [first] = await poisonedIn(file);
    expect((await decide(file, [first?.id as number], 'redrive', 9)).changed).toHaveLength(1);
    await outbox.queueRedrives();
    await outbox.idle();
    expect(server.ledger.messages.at(-1)).toBe('2');
  });

  test('are not sent again when no request can hold them', async () => {
    const outbox = await open();
    await outbox.enqueue(log('x'.repeat(9_000_000)));
    await outbox.idle();
    expect(await decide(file, [1], 'redrive', 1)).toMatchObject({
      changed: [],
      refused: [{ why: 'it is too large for any request' }],
    });
  });

  test('rejected records are not sent again after fresher ones when they report agent status', async () => {
    const outbox = await open();
    const status = (state: string): OutgoingRecord => ({
      kind: 'status',
      agentId: 'agent-1',
      sessionId: 's1',
      occurredAt: 1,
      status: { state },
    });
    server.script({ kind: 'answer', ...refusal(400, 'malformed', {}) });
    await outbox.enqueue(status('working'));
    await outbox.idle();
    await outbox.enqueue(status('idle'));
    await outbox.idle();
    expect(await decide(file, 'all', 'redrive', 1)).toMatchObject({
      changed: [],
      refused: [{ id: 1, why: 'it is an old status report, and newer ones have replaced it' }],
    });
    await outbox.queueRedrives();
    await outbox.idle();
    expect(server.ledger.records.map(({ kind }) => kind)).toEqual(['lost', 'status']);
    expect((await decide(file, 'all', 'discarded', 2)).changed).toEqual([1]);
  });

  test('wait while the outbox is full', async () => {
    await (await withRefused()).stop();
    await decide(file, 'all', 'redrive', 1);
    const full = await Outbox.open(file, {
      producerId: 'producer-1',
      agentId: 'agent-1',
      endpoint: async () => ({ url: 'http://127.0.0.1:9', token: undefined }),
      bound: { maxRows: 1, maxBytes: 1_000 },
    });
    onTestFinished(async () => void (await full.stop()));
    expect(full.status.waiting).toBe(0);
    expect((await poisonedIn(file)).map(({ state }) => state)).toEqual(['redrive', 'redrive']);
  });
});

test.each([
  [1, 'an older version of Interlude; send its records with the version that wrote it, then move the file away'],
  [99, 'a newer version of Interlude; update this Interlude'],
])('a file of version %i is left unchanged, with the reason', async (version, reason) => {
  await (await withRefused()).stop();
  const client = createClient({ url: `file:${file}` });
  onTestFinished(() => client.close());
  await client.execute(`PRAGMA user_version = ${version}`);
  await expect(open()).rejects.toThrow(`${file} was written by ${reason}`);
  await expect(readOutbox(file)).rejects.toThrow(`not an outbox of this version (${version})`);
  expect((await client.execute('SELECT count(*) AS kept FROM poisoned')).rows[0]?.kept).toBe(2);
});

describe('the command', () => {
  test('reports every outbox while its runner runs', async () => {
    await server.close();
    const outbox = await open();
    await outbox.enqueue([log('a'), log('b')]);
    const { stdout, exitCode, stderr } = await cli('status');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const [head, row] = stdout.trim().split('\n');
    expect(head).toMatch(/^OUTBOX +RUNNER +WAITING +OLDEST +SIZE +REFUSED +LOST$/);
    expect(row).toMatch(new RegExp(`^agent-1 +${process.pid} +2 +1 min +\\d+ B +0 +0$`));
    const [json] = (await cli('status', '--json')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(json).toMatchObject({ outbox: 'agent-1', depth: 2, poisoned: 0, lost: 0, pid: process.pid });
    expect(json.oldestAgeMs).toBeGreaterThanOrEqual(60_000);
    await server.listen();
  });

  test('lists rejected records, and lets the next outbox resend or discard them', async () => {
    await (await withRefused()).stop();
    expect((await cliAlone('list')).stdout).toMatch(/agent-1 +1 +kept +\S+Z +log +agent-1 +- +refused: malformed/);
    expect(await cliAlone('redrive', '--outbox', 'agent-1', '--id', '1')).toMatchObject({
      exitCode: 0,
      stdout: 'sending 1 record again\n',
    });
    const next = await open();
    await next.idle();
    await next.stop();
    expect(server.ledger.messages).toContain('2');
    expect((await cliAlone('discard', '--all')).stdout).toContain('discarded 1 record;');
    expect((await cliAlone('list')).stdout).toBe('no refused records\n');
    const all = (await cliAlone('list', '--all', '--json')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(all).toMatchObject([
      { state: 'redriven', record: { log: { message: '2' } } },
      { state: 'discarded', record: { log: { message: '4' } } },
    ]);
    expect((await cliAlone('redrive', '--all')).exitCode).toBe(1);
  });

  test('prints its usage, and skips a file that is no outbox', async () => {
    expect((await cliAlone('status')).stdout).toBe('no outbox yet\n');
    writeFileSync(file, 'no database at all, but long enough to be looked at as one');
    expect(await cliAlone('status')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining("agent-1.db can't be read"),
    });
    expect(await cliAlone()).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('use status, list') });
    expect((await cliAlone('redrive')).exitCode).toBe(2);
    expect((await cliAlone('discard', '--id', '1')).exitCode).toBe(2);
    expect((await cliAlone('list', '--outbox', 'nobody')).exitCode).toBe(1);
  });
});
