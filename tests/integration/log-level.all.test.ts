import type { LogPage } from '@interlude/protocol/read-models';
import { expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../support/clocks';
import { LocalDashboard } from '../support/local-dashboard';
import { startSilentRunner } from '../support/silent-runner';
import { tempDir } from '../support/temp-dir';
import { expectWithin } from '../support/timing';

test('debug lines arrive within a second of the requested level', async () => {
  const dashboard = await LocalDashboard.start();
  onTestFinished(() => dashboard.close());
  const { endpoint } = dashboard;
  const clock = new ManualClock();
  const { logger } = await startSilentRunner({ agentId: 'quiet', folder: await tempDir(), endpoint, clock });
  const path = '/agents/quiet/log-level';
  const until = (look: () => unknown) => expect.poll(look, { interval: 10 });
  const messages = async () =>
    (await dashboard.request<LogPage>('/agents/quiet/logs')).lines.map(({ message }) => message);
  const tookMs: number[] = [];
  // The fastest counts: the machine may be busy.
  for (const turn of ['first', 'second', 'third']) {
    const askedAt = performance.now();
    await dashboard.request(path, { level: 'debug' }, 'PUT');
    await until(() => logger.level.get()).toBe('debug');
    logger.child('test').debug(turn);
    await until(messages).toContain(turn);
    tookMs.push(performance.now() - askedAt);
    await dashboard.request(path, { level: null }, 'PUT');
    await until(() => logger.level.get()).toBe('info');
  }
  expectWithin(Math.min(...tookMs), 1_000);
});
