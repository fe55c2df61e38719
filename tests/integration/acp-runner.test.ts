import { afterAll, beforeAll, expect, test } from 'vitest';
import { acpRunner, poll } from '../support/attachment-stage';
import { LocalDashboard } from '../support/local-dashboard';

let dashboard: LocalDashboard;

beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});

afterAll(() => dashboard.close());

test('text after the turn of an ACP agent joins its message, or stays outside turns', async () => {
  const { agent, opened, post, session, turns } = await acpRunner(dashboard, 'tail', { name: 'qwen-code' });
  await opened();
  await post('messages', { text: 'Go.', clientId: 'c1' });
  await agent.prompted(1);
  agent.say('It is ', 'a');
  agent.answerPrompt();
  agent.say('done.', 'a');
  agent.say('Task stopped by user.');
  const texts = async () =>
    (await turns()).map(({ kind, state, items }) => [
      ...[kind, state],
      ...items.flatMap((item) => (item.kind === 'message' && item.role === 'assistant' ? [item.text] : [])),
    ]);
  await poll(texts).toEqual([
    ['user', 'finished', 'It is done.'],
    ['none', 'finished', 'Task stopped by user.'],
  ]);
  await poll(async () => (await session()).state).toBe('idle');
});

test('the runner refuses an agent with another ACP version in one sentence, and exits with 1', async () => {
  const answer = (method: string) => (method === 'initialize' ? { protocolVersion: 2 } : undefined);
  const { ended } = await acpRunner(dashboard, 'version', { answer });
  const { exitCode, stderr } = await ended;
  expect(exitCode).toBe(1);
  expect(stderr).toContain('the agent speaks ACP version 2; install a version');
});

test('a session ended from the dashboard ends its agent and runner, which exits with 0', async () => {
  const { ended, opened, post, session, turns, summary } = await acpRunner(dashboard, 'idle');
  await opened();
  await poll(async () => (await summary()).status?.takes).toContain('session.end');
  await post('end');
  const end = await ended;
  expect([end.exitCode, end.stderr]).toEqual([0, 'interlude: ended from the dashboard\n']);
  expect(await session()).toMatchObject({ state: 'exited', stateReason: 'ended from the dashboard' });
  const texts = (await turns()).flatMap(({ items }) => items.map((item) => ('text' in item ? item.text : item.kind)));
  expect(texts).toEqual(['The runner began to end the session.', expect.stringContaining('ended from the dashboard')]);
  await expect(post('end')).rejects.toThrow('session_ended');
});
