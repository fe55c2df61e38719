import { afterAll, beforeAll, expect, test } from 'vitest';
import { acpRunner, poll } from '../support/attachment-stage';
import { LocalDashboard } from '../support/local-dashboard';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

test('what follows a turn of an ACP agent stands in its message, or outside of turns', async () => {
  const { agent, post, session, turns } = await acpRunner(dashboard, 'tail', { name: 'qwen-code' });
  await poll(() => agent.of('session/new').length).toBe(1);
  await post('messages', { text: 'Go.', clientId: 'c1' });
  await agent.prompted(1);
  agent.say('It is ', 'a');
  agent.answerPrompt();
  agent.say('done.', 'a');
  agent.say('Task stopped by user.');
  const shown = async () =>
    (await turns()).map(({ kind, state, items }) => [
      ...[kind, state],
      ...items.flatMap((item) => (item.kind === 'message' && item.role === 'assistant' ? [item.text] : [])),
    ]);
  await poll(shown).toEqual([
    ['user', 'finished', 'It is done.'],
    ['none', 'finished', 'Task stopped by user.'],
  ]);
  await poll(async () => (await session()).state).toBe('idle');
});

test('a runner refuses an agent of another ACP in one sentence, and exits with 1', async () => {
  const answer = (method: string) => (method === 'initialize' ? { protocolVersion: 2 } : undefined);
  const { ended } = await acpRunner(dashboard, 'version', { answer });
  const { exitCode, stderr } = await ended;
  expect(exitCode).toBe(1);
  expect(stderr).toContain('the agent speaks ACP version 2; install a version');
});
