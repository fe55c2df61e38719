import { CUSTOM } from '@interlude/protocol/event-fields';
import { RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Database, openDatabase } from '@/db/client';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { connectRunner, disconnectRunner } from '@/lib/server/commands/runner-connection';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type UnreliableProxy, unreliableProxy } from '../support/test-proxies';
import { expectWithin } from '../support/timing';

/** Whoever finds many runners gone at once, on a libSQL server 30 ms away. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;
const ONE_WAY_MS = 15;
const RUNNER = { id: 'r1', startedAt: 1_000 };

suites('many runners that go at once', () => {
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

  /** So many agents in mid-turn, whose runners go, and whose absence is due. */
  async function leave(count: number): Promise<void> {
    const ids = Array.from({ length: count }, (_, at) => `agent-${round}-${at}`);
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
  const instance = async (kind: 'shared' | 'perRequest') => {
    const database = await openDatabase({ url: line.origin, isKnown: true });
    opened.push(database);
    return new CommandHub({ database, now: () => now, steady: () => performance.now(), kind });
  };
  const count = async (sql: string) => Number((await near.reader.execute(sql)).rows[0]?.count);
  const working = () => count(`SELECT count(*) AS count FROM sessions WHERE state = 'working'`);
  const told = () => count(`SELECT count(*) AS count FROM events WHERE name = '${CUSTOM.runnerAway}'`);

  test('are all told of while one would have to be', async () => {
    await leave(100);
    expect(await working()).toBe(100);
    const hub = await instance('shared');
    const since = performance.now();
    await hub.sweep();
    expectWithin(performance.now() - since, 15_000);
    expect([await working(), await told()]).toEqual([0, 100]);
  });

  test('are told of by one of all requests that come at once, and the others wait for that', async () => {
    // few enough that the slowest machine is done while the others still wait
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
    expect(await told()).toBe(130);
    // most of what is left are their looks at whether it is done
    expect(line.requests - before).toBeLessThan((hubs.length / 2) * ofOne);
  });

  test('hold up nobody where one of them can’t be told of: it is tried for all who ask at once', async () => {
    await leave(3);
    await near.writes.run((transaction) =>
      transaction.execute(`UPDATE sessions SET body = '{' WHERE id = 'session of agent-${round}-1'`),
    );
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const hubs = await Promise.all(Array.from({ length: 12 }, () => instance('perRequest')));
    await Promise.all(hubs.map((hub) => hub.sweepDue()));
    const tries = said.mock.calls.flat().filter((line) => /of the missing agent .* is skipped/.test(String(line)));
    said.mockRestore();
    expect(tries.length).toBeGreaterThan(0);
    expect(tries.length).toBeLessThan(4);
    expect(await told()).toBe(132);
  });
});
