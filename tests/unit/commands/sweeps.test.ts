import { COMMAND_EXPIRY_MS, RUNNER_AWAY_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { requestLogLevel } from '@/lib/server/commands/desired-state';
import { queueCommand } from '@/lib/server/commands/queue-command';
import { connectRunner, disconnectRunner } from '@/lib/server/commands/runner-connection';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** A row that can't be processed delays no other. */
const T0 = 1_795_170_000_000;
let target: InProcessTarget;
let now = T0;
let said: ReturnType<typeof vi.spyOn>;
beforeEach(async () => {
  now = T0;
  said = vi.spyOn(console, 'error').mockImplementation(() => {});
  target = await inProcessTarget(() => now);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await target.close();
});

const write = <T>(job: (transaction: WriteTransaction) => Promise<T>) => target.database.writes.run(job);
const run = (sql: string) => write((transaction) => transaction.execute(sql));
const rows = async (sql: string) => (await target.database.reader.execute(sql)).rows.map((row) => ({ ...row }));
const hub = () => new CommandHub({ database: target.database, now: () => now, steady: () => now });
const AGENTS = ['a1', 'a2', 'a3'];

/** Each agent has a session in mid-turn and an absent runner. */
async function allGone(status: Record<string, object> = {}): Promise<void> {
  for (const agentId of AGENTS) {
    const fields = { agentId, sessionId: `of-${agentId}`, occurredAt: T0 };
    await write((transaction) => connectRunner(transaction, agentId, { id: 'r', startedAt: 1 }, agentId, now));
    const events = [
      record(1, { ...fields, kind: 'status', event: undefined, status: status[agentId] ?? {} }),
      record(2, { ...fields, event: { type: 'RUN_STARTED', runId: 't' } }),
    ];
    await ingest(target, events, 1, agentId);
    await write((transaction) => disconnectRunner(transaction, agentId, agentId, now));
  }
  now += RUNNER_GRACE_MS;
}
const states = () => rows('SELECT agent_id, state FROM sessions ORDER BY agent_id');
const cut = (table: string, id: string) => run(`UPDATE ${table} SET body = '{"cut' WHERE id = '${id}'`);

describe('the absence of runners', () => {
  // The database stores these as integers that JavaScript can't represent.
  it.each([2 ** 53, 1e18, -(2 ** 53), 1e308, 'x\u0000', [], {}, null])(
    'is recorded even if a status reports agentGoesOn as %j',
    async (goesOn) => {
      await allGone({ a1: { agentGoesOn: goesOn, everyMs: goesOn, logSwitch: { until: goesOn } } });
      await hub().sweep();
      expect((await states()).map(({ state }) => state)).toEqual(['unknown', 'unknown', 'unknown']);
      expect(said).not.toHaveBeenCalled();
    },
  );

  it('marks every session but an unreadable one, which is logged once', async () => {
    await allGone();
    await ingest(
      target,
      [record(3, { agentId: 'a1', sessionId: 'second', event: { type: 'RUN_STARTED', runId: 't' }, occurredAt: T0 })],
      1,
      'a1',
    );
    now += RUNNER_GRACE_MS;
    await run(`UPDATE sessions SET places = '{"cut' WHERE id = 'of-a1'`);
    const own = hub();
    for (let time = 0; time < 3; time += 1, now += RUNNER_GRACE_MS) await own.sweep();
    expect(await rows('SELECT id, state FROM sessions ORDER BY id')).toEqual([
      { id: 'of-a1', state: 'working' },
      { id: 'of-a2', state: 'unknown' },
      { id: 'of-a3', state: 'unknown' },
      { id: 'second', state: 'unknown' },
    ]);
    expect(said).toHaveBeenCalledTimes(1);
  });

  it('marks other agents when one can’t be read', async () => {
    await allGone();
    await cut('sessions', 'of-a2');
    await hub().sweep();
    expect((await states()).map(({ state }) => state)).toEqual(['unknown', 'working', 'unknown']);
  });
});

it('disconnects other silent runners when one agent can’t be read', async () => {
  for (const agentId of AGENTS)
    await write((transaction) => connectRunner(transaction, agentId, { id: 'r', startedAt: 1 }, agentId, now));
  await cut('agents', 'a2');
  now += RUNNER_AWAY_MS;
  const own = hub();
  for (let time = 0; time < 3; time += 1) await own.sweep();
  expect(await rows('SELECT agent_id FROM runners WHERE alive_until IS NOT NULL')).toEqual([{ agent_id: 'a2' }]);
  expect(said).toHaveBeenCalledTimes(1);
});

it('expires other commands and levels when one can’t be read', async () => {
  for (const agentId of AGENTS) {
    await ingest(
      target,
      [record(1, { agentId, sessionId: `of-${agentId}` })].map((one) => ({ ...one, event: { type: 'X' } })),
      1,
      agentId,
    );
    await write(async (transaction) => {
      const common = { agentId, sessionId: `of-${agentId}`, clientId: undefined, now };
      await queueCommand(transaction, { ...common, id: `c-${agentId}`, type: 'task.stop', body: { taskId: 't' } });
      await requestLogLevel(transaction, { agentId, level: 'debug', ttlSeconds: 60, by: 'operator' }, now);
    });
  }
  await cut('commands', 'c-a2');
  await cut('agents', 'a3');
  now += COMMAND_EXPIRY_MS;
  const own = hub();
  for (let time = 0; time < 3; time += 1) await own.sweep();
  const open = await rows(`SELECT id FROM commands WHERE type = 'task.stop' AND state = 'queued'`);
  // It is in the session's log, and so in its agent's row.
  expect(open).toEqual([{ id: 'c-a2' }, { id: 'c-a3' }]);
  expect((await rows('SELECT id FROM agents WHERE level_expires_at IS NOT NULL')).map((row) => row.id)).toEqual(['a3']);
});

it('trims and indexes other logs when one can’t be read', async () => {
  for (const agentId of AGENTS) {
    const lines = Array.from({ length: 200 }, (_, index) =>
      record(index + 1, { kind: 'log', agentId, log: { level: 'info', component: 'c', message: `line ${index}` } }),
    );
    await ingest(target, lines, 1, agentId);
  }
  await run(`UPDATE log_lines SET marker = '{"cut' WHERE agent_id = 'a1'`);
  await run(
    `CREATE TRIGGER stuck BEFORE DELETE ON log_lines WHEN OLD.agent_id = 'a3' BEGIN SELECT RAISE(ABORT, 'stuck'); END`,
  );
  const keeper = new LogKeeper({ database: target.database, now: () => now }, { maxAgeMs: 1_000, maxBytes: 1e9 });
  await keeper.indexAll();
  expect(await rows('SELECT agent_id FROM agent_logs WHERE indexed_line > 0 ORDER BY agent_id')).toEqual([
    { agent_id: 'a2' },
    { agent_id: 'a3' },
  ]);
  now += 60_000;
  await keeper.removeOld();
  keeper.close();
  expect(await rows('SELECT agent_id FROM agent_logs WHERE removed_lines > 0 ORDER BY agent_id')).toEqual([
    { agent_id: 'a1' },
    { agent_id: 'a2' },
  ]);
});
