import { afterAll, beforeAll, expect, test } from 'vitest';
import { acpRunner, poll } from '../support/attachment-stage';
import { LocalDashboard } from '../support/local-dashboard';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

test('a session ended from the dashboard has 5 seconds to finish its turn, which is then interrupted', async () => {
  const { agent, ended, opened, post, session, turns } = await acpRunner(dashboard, 'busy');
  await opened();
  await post('messages', { text: 'Build it', clientId: 'm' });
  await agent.prompted(1);
  agent.say('Building.');
  await poll(async () => (await turns()).at(-1)?.state).toBe('open');
  const requestedAt = performance.now();
  await post('end');
  expect(await ended).toMatchObject({ exitCode: 0 });
  expect(performance.now() - requestedAt).toBeGreaterThan(4_500);
  expect((await session()).stateReason).toBe('ended from the dashboard');
  expect((await turns()).find(({ kind }) => kind === 'user')).toMatchObject({ state: 'interrupted' });
});
