import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentList } from '@interlude/protocol/read-models';
import { ASSISTANT } from '@interlude/runner/cli/demo/assistant-script';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askForTests, assistantStage, expectFullDialogue } from '../support/assistant-stage';
import { LocalDashboard } from '../support/local-dashboard';
import { assistantText, messages, notices, requests } from '../support/operator';

/** The demo's built-in agent on the real runner and dashboard. */

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

test('the demo’s agent asks before it runs the tests, runs them when allowed, and wakes when they end', async () => {
  const stage = await assistantStage(dashboard);
  await expectFullDialogue(stage);
  expect(notices(await stage.operator.turns())[0]).toContain('a scripted agent');
  await stage.close();
  expect(await stage.operator.session()).toMatchObject({ state: 'exited', stateReason: 'the runner was stopped' });
});

test('the demo’s agent runs nothing when denied, and says so', async () => {
  const stage = await assistantStage(dashboard);
  const { operator } = stage;
  const request = await askForTests(stage);
  const kinds = (await operator.turns()).at(-1)?.items.map(({ kind }) => kind);
  expect(kinds).toEqual(['message', 'message', 'tool-call', 'request']);
  await operator.answer(request.id, { behavior: 'deny', digest: request.digest });
  const turns = await operator.finished(2);
  expect(assistantText(turns[1])).toContain('You said no, so I have not run anything.');
  expect(requests(turns)).toMatchObject([{ outcome: 'denied' }]);
  expect(await operator.tasks()).toEqual([]);
});

test('the demo’s agent runs only the command that it asked for, for any allower', async () => {
  const stage = await assistantStage(dashboard);
  const { operator, dataDir } = stage;
  const { id, digest } = await askForTests(stage);
  const file = join(dataDir, 'not-mine');
  await operator.answer(id, { behavior: 'allow', digest, updatedInput: { command: `echo > '${file}'` } });
  const turns = await operator.finished(2);
  expect(assistantText(turns[1])).toContain('I run only what I asked for');
  expect(await operator.tasks()).toEqual([]);
  expect(existsSync(file)).toBe(false);
});

test('the demo’s agent accepts the answer to a question, and answers anything else with its abilities', async () => {
  const { operator } = await assistantStage(dashboard);
  await operator.send('Ask me a question');
  const question = await operator.until('a question', (turns) =>
    requests(turns).find(({ outcome }) => outcome === null),
  );
  expect(question.requestKind).toBe('question');
  await operator.answer(question.id, { answers: { Colour: 'Blue' }, digest: question.digest });
  await operator.finished(2);
  await operator.send('<img src=x onerror=alert(1)> What is the meaning of life?');
  const turns = (await operator.finished(3)).slice(1);
  expect(assistantText(turns[0])).toContain('Blue it is.');
  expect(assistantText(turns[1])).toContain('I am scripted');
  expect(assistantText(turns[1])).not.toContain('<img');
  expect(messages(turns, 'user').map(({ delivery }) => delivery)).toEqual(['seen', 'seen']);
});

test('the demo’s agent is interrupted, without a failed turn or session, when it is stopped at a request', async () => {
  const stage = await assistantStage(dashboard);
  await askForTests(stage);
  await stage.close();
  const turns = await stage.operator.turns();
  expect(turns.findLast(({ kind }) => kind === 'user')).toMatchObject({ state: 'interrupted', error: null });
  expect(requests(turns)).toMatchObject([{ outcome: 'cancelled' }]);
  expect(await stage.operator.session()).toMatchObject({ state: 'exited', stateReason: 'the runner was stopped' });
});

test('the demo’s agent introduces itself, and handles every command that needs no other agent', async () => {
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
