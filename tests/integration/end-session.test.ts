import { afterAll, beforeAll, expect, test } from 'vitest';
import { acpRunner, poll } from '../support/attachment-stage';
import { LocalDashboard } from '../support/local-dashboard';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

test('a session ended from the dashboard ends with its agent and its runner, which exits with 0', async () => {
  const { agent, ended, post, session, turns, summary } = await acpRunner(dashboard, 'idle');
  await poll(() => agent.of('session/new').length).toBe(1);
  expect((await summary()).status?.takes).toContain('session.end');
  await post('end');
  const end = await ended;
  expect([end.exitCode, end.stderr]).toEqual([0, 'interlude: ended from the dashboard\n']);
  expect(await session()).toMatchObject({ state: 'exited', stateReason: 'ended from the dashboard' });
  const said = (await turns()).flatMap(({ items }) => items.map((item) => ('text' in item ? item.text : item.kind)));
  expect(said).toEqual(['The runner ends the session.', expect.stringContaining('ended from the dashboard')]);
  await expect(post('end')).rejects.toThrow('session_ended');
});
