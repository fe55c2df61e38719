import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { AgentList } from '@/lib/protocol/read-models';
import { ASSISTANT } from '@/lib/runner/demo/assistant-script';
import { askForTests, assistantStage, expectTakesPart } from '../support/assistant-stage';
import { startCli } from '../support/cli';
import { LocalDashboard } from '../support/local-dashboard';
import { messages, notices, Operator, requests, said } from '../support/operator';
import { tempDir } from '../support/temp-dir';

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
  expect(await stage.operator.session()).toMatchObject({ state: 'exited', stateReason: 'the runner was stopped' });
});

test('denied, the demo’s agent runs nothing and says so', async () => {
  const stage = await assistantStage(dashboard);
  const { operator } = stage;
  const asked = await askForTests(stage);
  const kinds = (await operator.turns()).at(-1)?.items.map(({ kind }) => kind);
  expect(kinds).toEqual(['message', 'message', 'tool-call', 'request']);
  await operator.answer(asked.id, { behavior: 'deny', digest: asked.digest });
  const turns = await operator.finished(1);
  expect(said(turns[0])).toContain('You said no, so I have not run anything.');
  expect(requests(turns)).toMatchObject([{ outcome: 'denied' }]);
  expect(await operator.tasks()).toEqual([]);
});

test('the demo’s agent runs nothing that it did not ask for, whoever allows it', async () => {
  const stage = await assistantStage(dashboard);
  const { operator, dataDir } = stage;
  const { id, digest } = await askForTests(stage);
  const file = join(dataDir, 'not-mine');
  await operator.answer(id, { behavior: 'allow', digest, updatedInput: { command: `echo > '${file}'` } });
  const turns = await operator.finished(1);
  expect(said(turns[0])).toContain('I run only what I asked for');
  expect(await operator.tasks()).toEqual([]);
  expect(existsSync(file)).toBe(false);
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

test('the demo’s agent, stopped where it asks, was interrupted: neither its turn nor its session has failed', async () => {
  const stage = await assistantStage(dashboard);
  await askForTests(stage);
  await stage.close();
  const turns = await stage.operator.turns();
  expect(turns.find(({ kind }) => kind === 'user')).toMatchObject({ state: 'interrupted', error: null });
  expect(requests(turns)).toMatchObject([{ outcome: 'cancelled' }]);
  expect(await stage.operator.session()).toMatchObject({ state: 'exited', stateReason: 'the runner was stopped' });
});

test('the demo’s agent says that it is of the demo, and acts on all that needs no other agent and does not end it', async () => {
  await assistantStage(dashboard);
  const status = async () => {
    const response = await fetch(`${dashboard.url}/api/v1/agents`, {
      headers: { authorization: `Bearer ${dashboard.token}` },
    });
    const { agents } = (await response.json()) as AgentList;
    return agents.find(({ id }) => id === ASSISTANT)?.status;
  };
  await expect.poll(status).toMatchObject({ kind: 'scripted', source: 'demo', process: { state: 'running' } });
  expect(Object.keys((await status())?.takesNot ?? {}).sort()).toEqual(['session.end', 'task.wake', 'wake-rule.set']);
});

test('killed in mid-turn and started again, the demo goes on with its agent’s session, and nothing says that it works', async () => {
  const env = {
    INTERLUDE_DATA_DIR: join(await tempDir(), 'data'),
    INTERLUDE_URL: dashboard.url,
    INTERLUDE_TOKEN: dashboard.token,
  };
  const sessionsBefore = new Set(await sessionIds());
  const first = startCli(['demo', '--speed', '10'], env);
  onTestFinished(() => void first.process.kill('SIGKILL'));
  const mine = async () => (await sessionIds()).find((id) => !sessionsBefore.has(id));
  await expect.poll(mine).toBeTruthy();
  const operator = new Operator(dashboard, (await mine()) as string);
  await askForTests({ operator });
  first.process.kill('SIGKILL');
  await first.ended;

  const second = startCli(['demo', '--speed', '10'], env);
  onTestFinished(() => void second.process.kill('SIGKILL'));
  await operator.until('a notice', (turns) => notices(turns).some((text) => text.includes('started again')));
  // A list that was told late may have ended it for a moment before; it is open again with the next, and then cancelled.
  const asked = requests(await operator.turns());
  expect(asked.at(-1)).toMatchObject({ outcome: 'cancelled' });
  expect(asked.slice(0, -1).every(({ outcome }) => outcome === 'unknown')).toBe(true);
  expect((await operator.session())?.state).not.toMatch(/working|waiting/);
  await operator.send('Hello?');
  await operator.until('an answer', (turns) =>
    turns.some((turn) => turn.state === 'finished' && said(turn).includes('I have read that.')),
  );
  second.process.kill('SIGINT');
  expect((await second.ended).exitCode).toBe(130);
  expect((await operator.session())?.state).toBe('exited');
});

async function sessionIds(): Promise<string[]> {
  const response = await fetch(`${dashboard.url}/api/v1/sessions?agent=${ASSISTANT}`, {
    headers: { authorization: `Bearer ${dashboard.token}` },
  });
  return ((await response.json()) as { sessions: { id: string }[] }).sessions.map(({ id }) => id);
}
