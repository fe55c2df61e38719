import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';
import { TwoClocks } from '../../support/two-clocks';

/** What retention removes by a clock that was moved: nothing, until it has proven right. */
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

let clocks: TwoClocks;
let target: InProcessTarget;
let keeper: LogKeeper;
let seq = 0;
beforeEach(async () => {
  clocks = new TwoClocks();
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
/** A server that runs for so long, looking every minute, while an agent logs now and then unless `isIdle`. */
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

describe('lines that are too old by the server’s clock', () => {
  it('are removed while it goes as it should', async () => {
    await runs(14 * DAY);
    expect(await kept()).toBe(true);
    await runs(DAY);
    expect(await kept()).toBe(false);
  });

  it('stay when it is 15 days ahead for a minute or an hour, records coming in or not', async () => {
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

  it('stay when it is 15 days ahead and the server starts anew meanwhile', async () => {
    clocks.isMoved(15 * DAY);
    starts();
    await keeper.retain();
    await runs(5 * MINUTE);
    starts();
    await runs(5 * MINUTE);
    expect(await kept()).toBe(true);
  });

  it('are removed after all when it has gone on like that for a day', async () => {
    await keeper.retain();
    clocks.isMoved(15 * DAY);
    await runs(23 * 60 * MINUTE);
    expect(await kept()).toBe(true);
    await runs(3 * 60 * MINUTE);
    expect(await kept()).toBe(false);
  });

  it('are removed soon by a server that was down for an hour', async () => {
    await runs(14 * DAY);
    clocks.goesBy(60 * MINUTE);
    starts();
    await keeper.retain();
    await runs(11 * MINUTE, true);
    expect(await kept()).toBe(false);
  });

  it('do not keep a log that is too large', async () => {
    clocks.isMoved(-15 * DAY);
    await logs('x'.repeat(2_000));
    await keeper.retain();
    expect(await kept()).toBe(false);
  });
});
