import { join } from 'node:path';
import { type LevelChange, LevelSwitch, PersistentLevel } from '@interlude/runner/logger/level-switch';
import { createLogger } from '@interlude/runner/logger/logger';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { describe, expect, onTestFinished, test } from 'vitest';
import { InstantClock, ManualClock } from '../../support/clocks';
import { tempDir } from '../../support/temp-dir';

const MINUTE = 60_000;

function watched(clock: ManualClock | InstantClock, env?: string) {
  const level = new LevelSwitch(env, clock);
  const changes: LevelChange[] = [];
  level.onChange((change) => changes.push(change));
  return { level, changes };
}

/** Fires timers until none is left. */
function runOff(clock: ManualClock): void {
  while (clock.armed.length > 0) clock.fire();
}

test.each([
  [undefined, 'info', null],
  ['', 'info', null],
  [' ', 'info', null],
  [' Debug ', 'debug', null],
  ['verbose', 'info', 'INTERLUDE_LOG_LEVEL is "verbose", not one of debug, info, warn, error, fatal; using info'],
])('INTERLUDE_LOG_LEVEL %j means %s, with the warning %j', (env, level, words) => {
  const levels = new LevelSwitch(env);
  expect([levels.get(), levels.warning]).toEqual([level, words]);
});

describe('a level with a time limit', () => {
  test('resets itself and names the cause', () => {
    const clock = new ManualClock();
    const { level, changes } = watched(clock, 'warn');
    level.set('debug', { ttlMs: 15 * MINUTE, by: 'operator' });
    const setAt = clock.time;
    runOff(clock);
    expect(clock.time - setAt).toBe(15 * MINUTE);
    expect(level.get()).toBe('warn');
    expect(changes).toEqual([
      { level: 'debug', previous: 'warn', by: 'operator' },
      { level: 'warn', previous: 'debug', by: 'time-limit' },
    ]);
  });

  test('resets itself soon after a machine slept through its end', () => {
    const clock = new ManualClock();
    const { level } = watched(clock);
    level.set('debug', { ttlMs: 15 * MINUTE, by: 'operator' });
    clock.time += 60 * MINUTE;
    clock.fire();
    expect(level.get()).toBe('info');
  });

  test('does not end the level that replaced it', () => {
    const clock = new ManualClock();
    const { level } = watched(clock);
    level.set('debug', { ttlMs: MINUTE, by: 'operator' });
    level.set('error', { by: 'operator' });
    expect(clock.armed).toEqual([]);
    clock.time += 2 * MINUTE;
    expect(level.get()).toBe('error');
  });

  test('supports limits longer than a timer', async () => {
    const clock = new InstantClock();
    const { level } = watched(clock);
    level.set('debug', { ttlMs: 10 * MINUTE, by: 'operator' });
    await expect.poll(() => level.get()).toBe('info');
    expect(Math.max(...clock.waits)).toBeLessThanOrEqual(30_000);
  });
});

async function keeper(folder: string, clock: ManualClock) {
  const outbox = await Outbox.open(join(folder, 'outbox.db'), {
    producerId: 'p',
    agentId: 'a',
    endpoint: async () => ({ url: 'http://127.0.0.1:9', token: '' }),
    sendAtOpen: false,
  });
  onTestFinished(async () => void (await outbox.stop()));
  const { level, changes } = watched(clock);
  const trouble: string[] = [];
  const kept = await PersistentLevel.restore(level, outbox, (message) => trouble.push(message));
  return { level, changes, kept, trouble, outbox };
}

const DEBUG = { level: 'debug', ttlSeconds: 900, by: 'operator', requestId: 'one' } as const;

describe('a level that was set', () => {
  test('survives a restart with its remaining time', async () => {
    const folder = await tempDir();
    const clock = new ManualClock();
    const before = await keeper(folder, clock);
    expect(await before.kept.apply(DEBUG)).toEqual({ state: 'done', result: { level: 'debug' } });
    await before.outbox.stop();
    before.level.close();
    clock.time += 10 * MINUTE;
    const after = await keeper(folder, clock);
    expect(after.level.get()).toBe('debug');
    expect(after.changes).toEqual([{ level: 'debug', previous: 'info', by: 'operator', isRestored: true }]);
    expect(after.kept.report).toEqual({ by: 'operator', until: clock.time + 5 * MINUTE, base: 'info' });
    runOff(clock);
    expect(after.level.get()).toBe('info');
    expect(after.kept.report).toEqual({ by: null, until: null, base: 'info' });
  });

  test('expires at the next start if its time has passed', async () => {
    const folder = await tempDir();
    const clock = new ManualClock();
    const before = await keeper(folder, clock);
    await before.kept.apply(DEBUG);
    await before.outbox.stop();
    before.level.close();
    clock.time += 16 * MINUTE;
    const after = await keeper(folder, clock);
    expect(after.level.get()).toBe('info');
    expect(after.changes.at(-1)).toEqual({ level: 'info', previous: 'debug', by: 'time-limit' });
    await after.outbox.stop();
    const third = await keeper(folder, clock);
    expect(third.changes).toEqual([]);
  });

  test('is not set again by a repeated request', async () => {
    const folder = await tempDir();
    const clock = new ManualClock();
    const before = await keeper(folder, clock);
    await before.kept.apply(DEBUG);
    before.level.set('warn', { by: 'control-port' });
    await before.outbox.stop();
    const after = await keeper(folder, clock);
    expect(await after.kept.apply({ ...DEBUG, ttlSeconds: 300 })).toEqual({ state: 'done', result: { level: 'warn' } });
    await after.kept.apply({ ...DEBUG, requestId: 'two' });
    expect(after.level.get()).toBe('debug');
  });

  test('is refused if it is unknown', async () => {
    const { kept, level } = await keeper(await tempDir(), new ManualClock());
    const loud = { ...DEBUG, level: 'trace' } as unknown as typeof DEBUG;
    expect(await kept.apply(loud)).toEqual({
      state: 'failed',
      reason: 'unknown level trace; use debug, info, warn, error, fatal',
    });
    expect(level.get()).toBe('info');
  });

  test("applies with a warning if it can't be stored", async () => {
    const { kept, level, trouble, outbox } = await keeper(await tempDir(), new ManualClock());
    await outbox.stop();
    expect(await kept.apply(DEBUG)).toMatchObject({ state: 'done' });
    expect(level.get()).toBe('debug');
    expect(trouble).toEqual([expect.stringContaining('could not store the log level')]);
  });
});

test('logs a level change at every level', async () => {
  const lines: [string, unknown][] = [];
  const logger = createLogger({
    agentId: 'a',
    dir: await tempDir(),
    level: 'error',
    onRecord: ({ message, marker }) => lines.push([message, marker]),
  });
  logger.info('unheard');
  logger.level.set('fatal', { by: 'operator' });
  logger.error('unheard');
  logger.level.set('debug', { by: 'control-port' });
  logger.debug('heard');
  logger.level.set('debug', { by: 'operator' });
  logger.close();
  expect(lines).toEqual([
    ['log level error → fatal (operator)', { kind: 'level', level: 'fatal', previous: 'error', by: 'operator' }],
    [
      'log level fatal → debug (control-port)',
      { kind: 'level', level: 'debug', previous: 'fatal', by: 'control-port' },
    ],
    ['heard', undefined],
  ]);
});
