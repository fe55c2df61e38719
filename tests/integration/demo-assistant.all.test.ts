import { join } from 'node:path';
import type { SessionList, TaskList } from '@interlude/protocol/read-models';
import { ASSISTANT } from '@interlude/runner/cli/demo/assistant-script';
import { FLEET } from '@interlude/runner/cli/demo/demo-source';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { askForTests, assistantStage } from '../support/assistant-stage';
import { startCli } from '../support/cli';
import { LocalDashboard } from '../support/local-dashboard';
import { assistantText, notices, Operator, requests } from '../support/operator';
import { tempDir } from '../support/temp-dir';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

test('the demo’s agent stops at a request when interrupted, and does not wake for a stopped task', async () => {
  const stage = await assistantStage(dashboard, { speed: 0.5 });
  const { operator } = stage;
  await askForTests(stage);
  await operator.interrupt();
  const broken = await operator.finished(2);
  expect(broken[1]?.state).toBe('interrupted');
  expect(requests(broken)).toMatchObject([{ outcome: 'cancelled' }]);

  const again = await askForTests(stage);
  await operator.answer(again.id, { behavior: 'allow', digest: again.digest });
  await operator.finished(3);
  const [task] = await operator.tasks();
  await operator.stop(task?.id ?? '');
  await expect.poll(async () => (await operator.tasks())[0]?.status).toBe('stopped');
  await operator.send('Hello');
  const turns = await operator.finished(4);
  expect(turns.map(({ kind }) => kind)).toEqual(['user', 'user', 'user', 'user']);
});

test('the demo resumes its agent’s session after a kill in mid-turn, and shows no work', async () => {
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
  await operator.until('a notice', (turns) => notices(turns).some((text) => text.includes('was restarted')));
  // A late report may resolve the request as unknown; the next one reopens it, and then it is cancelled.
  const shown = requests(await operator.turns());
  expect(shown.at(-1)).toMatchObject({ outcome: 'cancelled' });
  expect(shown.slice(0, -1).every(({ outcome }) => outcome === 'unknown')).toBe(true);
  expect((await operator.session())?.state).not.toMatch(/working|waiting/);
  await operator.send('Hello?');
  await operator.until('an answer', (turns) =>
    turns.some((turn) => turn.state === 'finished' && assistantText(turn).includes('I have read that.')),
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

test('the demo’s recordings report no unreadable output, because their files are on another machine', async () => {
  const env = { INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_URL: dashboard.url, INTERLUDE_TOKEN: dashboard.token };
  const demo = startCli(['demo', '--speed', '100'], env);
  onTestFinished(() => void demo.process.kill('SIGKILL'));
  const ended = async () => {
    const { sessions } = await dashboard.request<SessionList>('/sessions');
    const recorded = sessions.filter((one) => FLEET.some(({ agentId }) => agentId === one.agentId));
    const lists = await Promise.all(
      recorded.map(({ id }) => dashboard.request<TaskList>(`/sessions/${encodeURIComponent(id)}/tasks`)),
    );
    return lists.flatMap(({ tasks }) => tasks.filter(({ outputFile, endedAt }) => outputFile && endedAt));
  };
  await expect.poll(async () => (await ended()).length).toBeGreaterThan(3);
  demo.process.kill('SIGINT');
  await demo.ended;
  expect((await ended()).filter(({ hasOutput }) => hasOutput)).toEqual([]);
});
