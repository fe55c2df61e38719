import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { background, type Context, say, turn } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ClaudeStage, claudeStage, quickStep } from '../support/claude-stage';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { assistantText } from '../support/operator';
import { scaled } from '../support/timeouts';

/** Several real Claude Code agents, each with its own runner, on one dashboard. */
const AGENTS = scaled(2, 8);
const TASKS = Array.from({ length: scaled(1, 30) }, (_, index) => index + 1);

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

/** Starts a task on request and reports its end. */
const SCRIPT = {
  turns: TASKS.flatMap((n) => [
    turn(
      new RegExp(`START ${n}\\.`),
      quickStep([background(`until [ -e go-${n} ]; do sleep 0.1; done; exit ${n}`, `Poll ${n}.`)]),
      quickStep([say(`Started ${n}.`)]),
    ),
    turn(new RegExp(`"Poll ${n}\\." failed`), ({ notices }: Context) =>
      quickStep([say(notices.map(({ summary }) => /"(.*?)"/.exec(summary)?.[1]).join(' | '))]),
    ),
  ]),
};

test('each of several agents wakes once for each of its tasks', async () => {
  const stages = await Promise.all(Array.from({ length: AGENTS }, () => claudeStage(server, SCRIPT)));
  await Promise.all(stages.map(work));
});

async function work(stage: ClaudeStage): Promise<void> {
  const { operator, cwd } = stage;
  await stage.runner();
  for (const n of TASKS) {
    await operator.send(`START ${n}.`);
    // a task that ends within its starting turn is reported there
    await operator.finished(2 * n - 1);
    await writeFile(join(cwd, `go-${n}`), '');
    await operator.finished(2 * n);
  }
  const turns = await operator.finished(2 * TASKS.length);
  expect(turns.map(({ kind, state }) => `${kind} ${state}`)).toEqual(
    TASKS.flatMap(() => ['user finished', 'between-run finished']),
  );
  expect(turns.map(assistantText)).toEqual(TASKS.flatMap((n) => [`Started ${n}.`, `Poll ${n}.`]));
  const tasks = await operator.tasks();
  expect(tasks.map(({ description, exitCode, answeredInTurnId }) => [description, exitCode, answeredInTurnId])).toEqual(
    TASKS.map((n) => [`Poll ${n}.`, n, turns[2 * n - 1]?.id]),
  );
  expect(await stage.end()).toMatchObject({ exitCode: 0 });
  expect(stage.problems()).toEqual([]);
}
