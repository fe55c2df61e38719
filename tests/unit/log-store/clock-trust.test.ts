import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { AdjustableClocks } from '@/tests/support/clocks';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Retention after a clock jump: nothing is removed until the clock is trusted. */
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

let clocks: AdjustableClocks;
let target: InProcessTarget;
let keeper: LogKeeper;
let seq = 0;
beforeEach(async () => {
  clocks = new AdjustableClocks();
  seq = 0;
  target = await inProcessTarget(clocks.now);
  await logs();
  starts();
});
afterEach(() => target.close());

function starts(): void {
  keeper = new LogKeeper(
    { database: target.database, now: clocks.now, steady: clocks.steady },
    { maxAgeMs: 14 * DAY, maxBytes: 1_000 },
  );
}
const logs = (message = 'a line') =>
  ingest(target, [record(++seq, { kind: 'log', event: undefined, log: { level: 'info', message } })]);
/** Runs a server for this long with a check every minute. An agent logs now and then unless `isIdle`. */
async function runs(forMs: number, isIdle = false): Promise<void> {
  const every = Math.max(MINUTE, forMs / 20);
  for (let passed = 0; passed < forMs; passed += every) {
    clocks.goesBy(every);
    if (!isIdle) await logs();
    await keeper.retain();
  }
}
async function kept(): Promise<boolean> {
  const { rows } = await target.database.reader.execute('SELECT removed_lines FROM agent_logs');
  return Number(rows[0]?.removed_lines) === 0;
}

describe('log lines that are too old by the server’s clock', () => {
  it('are removed while the clock runs steadily', async () => {
    await runs(14 * DAY);
    expect(await kept()).toBe(true);
    await runs(DAY);
    expect(await kept()).toBe(false);
  });

  it('stay when the clock is 15 days ahead for a minute or an hour, with and without new records', async () => {
    for (const [forMs, isIdle] of [
      [MINUTE, true],
      [MINUTE, false],
      [60 * MINUTE, false],
    ] as const) {
      await runs(20 * MINUTE);
      clocks.isMoved(15 * DAY);
      await keeper.retain();
      await runs(forMs, isIdle);
      clocks.isMoved(-15 * DAY);
      await runs(20 * MINUTE, isIdle);
    }
    expect(await kept()).toBe(true);
  });

  it('stay when the clock is 15 days ahead and the server restarts', async () => {
    clocks.isMoved(15 * DAY);
    starts();
    await keeper.retain();
    await runs(5 * MINUTE);
    starts();
    await runs(5 * MINUTE);
    expect(await kept()).toBe(true);
  });

  it('are removed when the clock ran steadily for a day after the jump', async () => {
    await keeper.retain();
    clocks.isMoved(15 * DAY);
    await runs(23 * 60 * MINUTE);
    expect(await kept()).toBe(true);
    await runs(3 * 60 * MINUTE);
    expect(await kept()).toBe(false);
  });

  it('are removed soon after a server was down for an hour', async () => {
    await runs(14 * DAY);
    clocks.goesBy(60 * MINUTE);
    starts();
    await keeper.retain();
    await runs(11 * MINUTE, true);
    expect(await kept()).toBe(false);
  });

  it('are removed by size in any case', async () => {
    clocks.isMoved(-15 * DAY);
    await logs('x'.repeat(2_000));
    await keeper.retain();
    expect(await kept()).toBe(false);
  });
});
