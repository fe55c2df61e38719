import { join } from 'node:path';
import { type Assistant, startAssistant } from '@interlude/runner/cli/demo/assistant';
import { Redactor } from '@interlude/runner/logger/redactor';
import type { InstalledSdk } from '@interlude/runner/sources/claude/claude-sdk';
import { expect, onTestFinished } from 'vitest';
import { assistantText, Operator, requests } from './operator';
import { tempDir } from './temp-dir';

interface AssistantStage {
  dataDir: string;
  assistant: Assistant;
  operator: Operator;
  close(): Promise<void>;
}

/** The demo's answering agent and a dashboard, at test speed. */
export async function assistantStage(
  server: { url: string; token: string },
  {
    installed = null,
    speed = 20,
    dataDir: given,
  }: { installed?: InstalledSdk | null; speed?: number; dataDir?: string } = {},
): Promise<AssistantStage> {
  const dataDir = given ?? join(await tempDir(), 'data');
  const assistant = await startAssistant({
    dataDir,
    installed,
    env: { PATH: process.env.PATH },
    redactor: new Redactor(),
    endpoint: async () => ({ url: server.url, token: server.token }),
    speed,
    onStatus: () => {},
    onOver: (reason) => {
      throw new Error(reason);
    },
  });
  let closing: Promise<void> | null = null;
  const close = () => {
    closing ??= assistant.close();
    return closing;
  };
  onTestFinished(close);
  const operator = new Operator(server, assistant.sessionId);
  await operator.until('a greeting', (turns) => assistantText(turns[0]).includes('I am a scripted demo agent'));
  return { dataDir, assistant, operator, close };
}

/** Asks the agent to run the tests. @returns its permission request */
export async function askForTests({ operator }: Pick<AssistantStage, 'operator'>) {
  await operator.send('Please run the tests');
  return await operator.until('a permission', (turns) => requests(turns).find(({ outcome }) => outcome === null));
}

/** Expects the agent to greet, ask for permission to run the tests, end its turn, and wake when they finish. */
export async function expectFullDialogue(stage: AssistantStage): Promise<void> {
  const { operator } = stage;
  const asked = await askForTests(stage);
  expect(asked).toMatchObject({ requestKind: 'permission', toolName: 'Bash' });
  expect((await operator.session())?.state).toBe('needs-input');
  await operator.answer(asked.id, { behavior: 'allow', digest: asked.digest });
  const turns = (await operator.finished(3)).slice(1);
  expect(turns.filter(({ kind }) => kind !== 'none').map(({ kind, state }) => `${kind} ${state}`)).toEqual([
    'user finished',
    'between-run finished',
  ]);
  const [task, ...more] = await operator.tasks();
  expect(more).toEqual([]);
  expect(task).toMatchObject({ status: 'completed', exitCode: 0 });
  expect(turns[1]).toMatchObject({ trigger: { kind: 'task', taskIds: [task?.id] } });
  expect(assistantText(turns[1])).toContain('The tests are done, with exit code 0');
}
