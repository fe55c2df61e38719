import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgentList } from '@/lib/protocol/read-models';
import { askForTests, assistantStage, expectTakesPart } from '../support/assistant-stage';
import { LocalDashboard } from '../support/local-dashboard';
import { messages, notices, requests, said } from '../support/operator';

/** The built-in agent of the demo, on the real runner, beside the real dashboard. */

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

test('the demo’s agent asks before it runs the tests, runs them when it is allowed to, and wakes when they are done', async () => {
  const stage = await assistantStage(dashboard);
  await expectTakesPart(stage);
  expect(notices(await stage.operator.turns())[0]).toContain('a scripted agent');
  await stage.close();
  expect(await stage.operator.session()).toMatchObject({ state: 'done', stateReason: 'the runner was stopped' });
});

test('denied, the demo’s agent runs nothing and says so', async () => {
  const stage = await assistantStage(dashboard);
  const { operator } = stage;
  const asked = await askForTests(stage);
  await operator.answer(asked.id, { behavior: 'deny', digest: asked.digest });
  const turns = await operator.finished(1);
  expect(said(turns[0])).toContain('You said no, so I have not run anything.');
  expect(requests(turns)).toMatchObject([{ outcome: 'denied' }]);
  expect(await operator.tasks()).toEqual([]);
});

test('the demo’s agent takes the answer to a question, and anything else with a word about what it can do', async () => {
  const { operator } = await assistantStage(dashboard);
  await operator.send('Ask me a question');
  const asked = await operator.until('a question', (turns) => requests(turns).find(({ outcome }) => outcome === null));
  expect(asked.requestKind).toBe('question');
  await operator.answer(asked.id, { answers: { Colour: 'Blue' }, digest: asked.digest });
  await operator.finished(1);
  await operator.send('<img src=x onerror=alert(1)> What is the meaning of life?');
  const turns = await operator.finished(2);
  expect(said(turns[0])).toContain('Blue it is.');
  expect(said(turns[1])).toContain('I am scripted');
  expect(said(turns[1])).not.toContain('<img');
  expect(messages(turns, 'user').map(({ delivery }) => delivery)).toEqual(['seen', 'seen']);
});

test('the demo’s agent is interrupted where it asks, and its task is stopped without waking it', async () => {
  const stage = await assistantStage(dashboard, { speed: 2 });
  const { operator } = stage;
  await askForTests(stage);
  await operator.interrupt();
  const broken = await operator.finished(1);
  expect(broken[0]?.state).toBe('interrupted');
  expect(requests(broken)).toMatchObject([{ outcome: 'cancelled' }]);

  const again = await askForTests(stage);
  await operator.answer(again.id, { behavior: 'allow', digest: again.digest });
  await operator.finished(2);
  const [task] = await operator.tasks();
  await operator.stop(task?.id ?? '');
  await expect.poll(async () => (await operator.tasks())[0]?.status).toBe('stopped');
  await operator.send('Hello');
  const turns = await operator.finished(3);
  expect(turns.filter(({ kind }) => kind !== 'none').map(({ kind }) => kind)).toEqual(['user', 'user', 'user']);
});

test('the demo’s agent says that it is of the demo, and acts on every command', async () => {
  const { assistant } = await assistantStage(dashboard);
  const status = async () => {
    const response = await fetch(`${dashboard.url}/api/v1/agents`, {
      headers: { authorization: `Bearer ${dashboard.token}` },
    });
    const { agents } = (await response.json()) as AgentList;
    return agents.find(({ id }) => assistant.sessionId.startsWith(id))?.status;
  };
  await expect.poll(status).toMatchObject({ kind: 'scripted', source: 'demo', process: { state: 'running' } });
  expect(await status()).not.toHaveProperty('takes');
});
