import { CUSTOM } from '@interlude/protocol/event-fields';
import { RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Database, openDatabase } from '@/db/client';
import { TtlCache } from '@/lib/server/access/ttl-cache';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { connectRunner, disconnectRunner } from '@/lib/server/commands/runner-connection';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { readStorage } from '@/lib/server/queries/read-storage';
import { ingest, record } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { sessionsOf, stepOf } from '../support/numbered-work';
import { type InProcessServer, inProcessServer, type ServerTarget } from '../support/server-target';
import { type UnreliableProxy, unreliableProxy } from '../support/test-proxies';
import { expectWithin } from '../support/timing';

/** Several instances on one libSQL server, and pages and sweeps with a distant one. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;

suites('two dashboards on one libSQL server', () => {
  test('apply concurrent actions, each with its own place in the audit', async () => {
    const libsql = await startLibsqlServer();
    onTestFinished(() => libsql.stop());
    const both: ServerTarget[] = [await inProcessServer(libsql.url), await inProcessServer(libsql.url)];
    onTestFinished(async () => void (await Promise.all(both.map((target) => target.close()))));
    const ids = Array.from({ length: 8 }, (_, index) => `s${index}`);
    const [first] = both as [ServerTarget, ServerTarget];
    for (const id of ids)
      await ingest(
        first,
        [record(1, { agentId: id, sessionId: id, event: { type: 'RUN_STARTED', threadId: id, runId: 'r' } })],
        1,
        id,
      );
    const answers = await Promise.all(
      both.flatMap((target, which) =>
        ids.map((id) =>
          target.send(`/api/v1/sessions/${id}/messages`, {
            method: 'POST',
            headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
            body: JSON.stringify({ text: 'Go on', clientId: `${which}-${id}` }),
          }),
        ),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
    const { entries } = await (await first.get('/api/v1/audit?limit=100')).json();
    expect(entries.map(({ number }: { number: number }) => number).sort((a: number, b: number) => a - b)).toEqual(
      answers.map((_, index) => index + 1),
    );
    expect(await (await first.get('/api/v1/audit/check')).json()).toMatchObject({ brokenAt: null });
  });
});

suites('the storage of a libSQL server', () => {
  test('is measured to the byte, like that of a file', async () => {
    const libsql = await startLibsqlServer();
    const remote = await openDatabase({ url: libsql.url, migrates: true });
    const storage = await readStorage(remote.reader, Date.now, new TtlCache());
    expect(storage.method).toBe('measured');
    expect(storage.parts.reduce((sum, { bytes }) => sum + bytes, storage.freeBytes)).toBe(storage.bytes);
    await remote.close();
    await libsql.stop();
  });
});

const STEPS = 240;

suites('pages from a distant database', () => {
  let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
  let line: UnreliableProxy;
  let target: InProcessServer;

  beforeAll(async () => {
    libsql = await startLibsqlServer();
    line = await unreliableProxy(libsql.url, 0);
    target = await inProcessServer(line.origin);
    const records = Array.from({ length: STEPS }, (_, index) => stepOf('far', index + 1).records).flat();
    const numbered = records.map((record, index) => ({ seq: index + 1, ...record }));
    for (let index = 0; index < numbered.length; index += 500)
      await ingest(target, numbered.slice(index, index + 500), 1, 'far');
  });
  afterAll(async () => {
    await target?.close();
    await line?.close();
    await libsql?.stop();
  });

  test.each([20, 200])('load a transcript of %i turns in few queries', async (limit) => {
    const before = line.requests;
    const page = await (await target.get(`/api/v1/sessions/${sessionsOf('far')[0]}/transcript?limit=${limit}`)).json();
    expect(page.turns).toHaveLength(limit);
    expect(line.requests - before).toBeLessThan(25);
  });
});

/** Latency of a distant server. */
const ONE_WAY_MS = 15;
const RUNNER = { id: 'r1', startedAt: 1_000 };

suites('many lost runners', () => {
  let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
  let near: Database;
  let line: UnreliableProxy;
  const opened: Database[] = [];
  let round = 0;
  let now = 1_795_170_000_000;

  beforeAll(async () => {
    libsql = await startLibsqlServer();
    near = await openDatabase({ url: libsql.url, migrates: true });
    line = await unreliableProxy(libsql.url, ONE_WAY_MS);
    opened.push(near);
  });
  afterAll(async () => {
    for (const database of opened) await database.close();
    await line?.close();
    await libsql?.stop();
  });
  beforeEach(() => {
    round += 1;
  });

  /** Creates this many agents in mid-turn whose runners are gone and whose grace period is over. */
  async function leave(count: number): Promise<void> {
    const ids = Array.from({ length: count }, (_, index) => `agent-${round}-${index}`);
    for (const agentId of ids) {
      const event = { type: 'RUN_STARTED', threadId: 's', runId: `of ${agentId}` } as const;
      await near.writes.run((transaction) =>
        appendFacts(transaction, now, [{ agentId, sessionId: `session of ${agentId}`, event }]),
      );
      await near.writes.run((transaction) => connectRunner(transaction, agentId, RUNNER, agentId, now));
      await near.writes.run((transaction) => disconnectRunner(transaction, agentId, agentId, now));
    }
    now += RUNNER_GRACE_MS;
  }
  // The clock runs at a tenth, so that no request gives up waiting before a slow machine has finished.
  const steady = () => performance.now() / 10;
  const instance = async (kind: 'shared' | 'perRequest') => {
    const database = await openDatabase({ url: line.origin, isKnown: true });
    opened.push(database);
    return new CommandHub({ database, now: () => now, steady, kind });
  };
  const count = async (sql: string) => Number((await near.reader.execute(sql)).rows[0]?.count);
  const working = () => count(`SELECT count(*) AS count FROM sessions WHERE state = 'working'`);
  const recorded = () => count(`SELECT count(*) AS count FROM events WHERE name = '${CUSTOM.runnerAway}'`);

  test('are recorded in about the time of one', async () => {
    await leave(100);
    expect(await working()).toBe(100);
    const hub = await instance('shared');
    const since = performance.now();
    await hub.sweep();
    expectWithin(performance.now() - since, 15_000);
    expect([await working(), await recorded()]).toEqual([0, 100]);
  });

  test('are recorded by one of several concurrent requests, while the others wait', async () => {
    await leave(15);
    const alone = line.requests;
    await (await instance('perRequest')).sweepDue();
    const ofOne = line.requests - alone;
    await leave(15);
    const before = line.requests;
    const hubs = await Promise.all(Array.from({ length: 20 }, () => instance('perRequest')));
    const left: number[] = [];
    await Promise.all(hubs.map((hub) => hub.sweepDue().then(async () => left.push(await working()))));
    expect(left).toEqual(hubs.map(() => 0));
    expect(await recorded()).toBe(130);
    // The rest are mostly checks for completion.
    expect(line.requests - before).toBeLessThan((hubs.length / 2) * ofOne);
  });

  test('don’t block requests when one can’t be recorded, which one request retries for all', async () => {
    await leave(3);
    await near.writes.run((transaction) =>
      transaction.execute(`UPDATE sessions SET body = '{' WHERE id = 'session of agent-${round}-1'`),
    );
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    const hubs = await Promise.all(Array.from({ length: 12 }, () => instance('perRequest')));
    await Promise.all(hubs.map((hub) => hub.sweepDue()));
    const tries = logged.mock.calls.flat().filter((line) => /of the missing agent .* is skipped/.test(String(line)));
    logged.mockRestore();
    expect(tries.length).toBeGreaterThan(0);
    expect(tries.length).toBeLessThan(4);
    expect(await recorded()).toBe(132);
  });
});
