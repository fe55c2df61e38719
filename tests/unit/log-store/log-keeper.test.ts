import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { logRetention } from '@/lib/server/log-store/remove-old-lines';
import { LineWriter } from '@/tests/support/ingest-target';
import { type InProcessTarget, inProcessTarget } from '../../support/ingest-target';

const DAY_MS = 24 * 60 * 60_000;
let target: InProcessTarget;
let now = 1_795_170_000_000;
let keeper: LogKeeper;

beforeEach(async () => {
  target = await inProcessTarget(() => now);
  keeper = new LogKeeper(
    { database: target.database, now: () => now, steady: () => now },
    { maxAgeMs: DAY_MS, maxBytes: 1e9 },
  );
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
});
afterEach(async () => {
  vi.useRealTimers();
  keeper.close();
  await target.close();
});

async function log() {
  const { rows } = await target.database.reader.execute('SELECT * FROM agent_logs');
  const row = rows[0];
  return { indexed: Number(row?.indexed_line), removed: Number(row?.removed_lines), bytes: Number(row?.bytes) };
}
const lines = (count: number) => Array.from({ length: count }, (_, n) => ({ message: `line ${n % 10}` }));

describe('the log keeper', () => {
  test('indexes lines soon after they were written, in full chunks', async () => {
    keeper.start();
    await new LineWriter(target, 'a').write(lines(150));
    expect((await log()).indexed).toBe(0);
    await vi.advanceTimersByTimeAsync(300);
    await vi.waitFor(async () => {
      await vi.advanceTimersByTimeAsync(50);
      expect((await log()).indexed).toBe(128);
    });
  });

  test('removes lines of every log within a minute of their expiry', async () => {
    keeper.start();
    await new LineWriter(target, 'a').write(lines(600));
    now += DAY_MS / 2;
    await new LineWriter(target, 'b').write(lines(5));
    now += DAY_MS / 2 + 1;
    expect((await log()).removed).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    await vi.waitFor(async () => {
      await vi.advanceTimersByTimeAsync(50);
      expect(await log()).toMatchObject({ removed: 600, bytes: 0 });
    });
    const { rows } = await target.database.reader.execute(
      'SELECT agent_id, line, marker IS NOT NULL AS is_marker FROM log_lines ORDER BY position',
    );
    expect(rows.map((row) => [row.agent_id, row.line, row.is_marker])).toEqual([
      ['a', 600, 1],
      ...[1, 2, 3, 4, 5].map((line) => ['b', line, 0]),
    ]);
  });

  test('reports its limits, even small ones', async () => {
    const retention = { maxAgeMs: DAY_MS / 100, maxBytes: 1024 };
    const small = new LogKeeper({ database: target.database, now: () => now }, retention);
    await new LineWriter(target, 'a').write([{ message: 'x'.repeat(1000) }, { message: 'y'.repeat(1000) }]);
    vi.useRealTimers();
    await small.removeOld();
    const { rows } = await target.database.reader.execute('SELECT message FROM log_lines WHERE marker IS NOT NULL');
    expect(rows[0]?.message).toBe('1 older line (1 KiB) removed: this log keeps 0.01 days and 0.00098 MiB');
    small.close();
  });

  test('stops with its server and leaves no timer', async () => {
    keeper.start();
    await new LineWriter(target, 'a').write(lines(100));
    keeper.close();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(120_000);
    expect((await log()).indexed).toBe(0);
    keeper.start();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('log retention', () => {
  test('is two weeks and 256 MiB by default', () => {
    expect(logRetention({})).toEqual({ maxAgeMs: 14 * DAY_MS, maxBytes: 256 * 1024 * 1024 });
    expect(logRetention({ INTERLUDE_LOG_RETENTION_DAYS: '0.5', INTERLUDE_LOG_RETENTION_MIB: '1' })).toEqual({
      maxAgeMs: DAY_MS / 2,
      maxBytes: 1024 * 1024,
    });
  });

  test('ignores and logs an invalid setting', () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    for (const days of ['0', '-1', 'two weeks', 'Infinity']) {
      expect(logRetention({ INTERLUDE_LOG_RETENTION_DAYS: days }).maxAgeMs).toBe(14 * DAY_MS);
    }
    expect(said).toHaveBeenCalledTimes(4);
    expect(said.mock.calls[0]?.[0]).toContain('INTERLUDE_LOG_RETENTION_DAYS=0 is not a number above 0');
    said.mockRestore();
  });
});
