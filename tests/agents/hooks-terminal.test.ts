import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentDetail } from '@interlude/protocol/read-models';
import { background, bash, type Context, say, tool, turn } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { claudeHome, claudeInTerminal, prompt, quickStep } from '../support/claude-stage';
import { runCli, startCli } from '../support/cli';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { messages, Operator, requests, textsByTurn, turnStates } from '../support/operator';
import { type TerminalStage, terminalStage } from '../support/terminal-stage';

/** The real Claude Code in a terminal: waiting for messages, and requests answered from the dashboard. */

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

test('an idle, waiting Claude Code wakes for a message and answers it in that turn', async () => {
  const stage: TerminalStage = await terminalStage(server, {
    turns: [
      turn(
        /START/,
        () => quickStep([background(stage.waitCommand, 'Wait for a message')]),
        quickStep([say('I rest, and listen.')]),
      ),
      turn(
        /"Wait for a message" completed \(exit code 0\)/,
        ({ output }) => quickStep([bash(`cat ${output('Wait for a message')}`, 'Read the message')]),
        ({ results }) => quickStep([say(results[0]?.text.includes('Is it warm?') ? 'Quite warm.' : 'I read nothing.')]),
      ),
    ],
  });
  const { operator } = stage;
  stage.type('START');
  await operator.finished(1);
  await expect.poll(async () => (await operator.session())?.wakeable).toBe(true);
  const messageId = await operator.send('Is it warm?');
  const turns = await operator.finished(2);
  expect(turnStates(turns)).toEqual(['user finished', 'between-run finished']);
  expect(textsByTurn(turns)[1]).toEqual(['Quite warm.']);
  expect(turns[1]?.userMessageIds).toEqual([messageId]);
  expect(messages(turns, 'user').find(({ id }) => id === messageId)).toMatchObject({ delivery: 'seen' });
  expect((await operator.tasks()).map(({ description, status }) => [description, status])).toEqual([
    ['Wait for a message', 'completed'],
  ]);
  expect(stage.problems()).toEqual([]);
});

/** Starts Claude Code in an interactive terminal with hooks that wait for the dashboard's answer. */
async function interactive(script: Parameters<typeof claudeHome>[1], ...flags: string[]) {
  const home = await claudeHome(server, script);
  onTestFinished(() => home.remove());
  const settings = join(home.config, 'settings.json');
  await runCli(['hooks', 'install', '--settings', settings, '--permissions'], home.runnerEnv);
  const agentId = `terminal-${randomUUID().slice(0, 8)}`;
  const companion = startCli(['runner', 'hooks', '--agent', agentId, ...flags], home.runnerEnv);
  onTestFinished(() => void companion.process.kill('SIGKILL'));
  await once(companion.process.stderr as NodeJS.ReadableStream, 'data');
  const terminal = await claudeInTerminal(home);
  /** The session starts with the first prompt. */
  const findOperator = async () => {
    const headers = { authorization: `Bearer ${server.token}` };
    const its = async () =>
      (await (await fetch(`${server.url}/api/v1/agents/${agentId}`, { headers })).json()) as AgentDetail;
    await expect.poll(async () => (await its()).sessions?.length).toBe(1);
    return new Operator(server, (await its()).sessions[0]?.id ?? '');
  };
  return { terminal, findOperator };
}

test('Claude Code in a terminal gets one hint to wait, is allowed from the dashboard, and wakes', async () => {
  const { terminal, findOperator } = await interactive({
    turns: [
      turn(/START/, quickStep([say('Nothing to do.')])),
      turn(
        /reach you while you are idle only if you listen/,
        ({ text }) => quickStep([background(/^ {2}(.+ wait)$/m.exec(text)?.[1] ?? 'false', 'Wait for a message')]),
        quickStep([say('I listen.')]),
      ),
      turn(
        /"Wait for a message" completed \(exit code 0\)/,
        ({ output }) => quickStep([tool('Read', { file_path: output('Wait for a message') })]),
        ({ results }) => quickStep([say(results[0]?.text.includes('Is it warm?') ? 'Quite warm.' : 'I read nothing.')]),
      ),
    ],
    otherwise: quickStep([say('All right.')]),
  });
  await prompt(terminal, 'START');
  const operator = await findOperator();
  const open = await operator.until('the question', (turns) => requests(turns).find(({ outcome }) => outcome === null));
  await operator.answer(open.id, { behavior: 'allow', digest: open.digest, clientId: 'a' });
  await expect.poll(async () => (await operator.session())?.wakeable).toBe(true);
  await operator.finished(1);
  const messageId = await operator.send('Is it warm?');
  const turns = await operator.finished(2);
  expect(turnStates(turns)).toEqual(['user finished', 'between-run finished']);
  expect(textsByTurn(turns)[0]).toEqual(['Nothing to do.', 'I listen.']);
  // The agent has not listened again. The message arrived that way, so it gets one reminder.
  expect(textsByTurn(turns)[1]).toEqual(['Quite warm.', 'All right.']);
  expect(turns[1]?.userMessageIds).toEqual([messageId]);
});

const question = (header: string, multiSelect?: boolean) =>
  tool('AskUserQuestion', {
    questions: [
      {
        options: ['SQLite', 'Postgres', 'Redis'].map((label) => ({ description: `Take ${label}`, label })),
        ...{ header, question: `Which ${header}?` },
        ...(multiSelect ? { multiSelect } : {}),
      },
    ],
  });

test('Claude Code in a terminal accepts dashboard answers to questions and plans it shows', async () => {
  const heard = ({ results }: Context) => results.map(({ text }) => text.split('. ')[0]).join(' | ');
  const plan = '# The plan\n\n1. Build it\n';
  const script = {
    turns: [
      turn(
        /START/,
        quickStep([question('database'), question('caches', true)]),
        (context) => quickStep([say(heard(context)), question('queue')]),
        (context) => quickStep([say(heard(context))]),
      ),
      turn(
        /PLAN/,
        ({ text }) => quickStep([tool('Write', { content: plan, file_path: /at (\S+\.md)/.exec(text)?.[1] })]),
        quickStep([tool('ExitPlanMode', {})]),
        quickStep([tool('ExitPlanMode', {})]),
        (context) => quickStep([say(heard(context))]),
      ),
    ],
  };
  const { terminal, findOperator } = await interactive(script, '--no-offer');
  await prompt(terminal, 'START');
  const operator = await findOperator();
  const asked = (title: string, isNot = '') =>
    operator.until(title, (turns) =>
      requests(turns).find((one) => one.outcome === null && one.title === title && one.id !== isNot),
    );
  const outcomes = async () => requests(await operator.turns()).map(({ outcome }) => outcome);

  const database = await asked('Which database?');
  await terminal.shows('Take Postgres');
  await operator.answer(database.id, {
    ...{ answers: { 'Which database?': 'Postgres' }, digest: database.digest, clientId: 'a' },
  });
  const caches = await asked('Which caches?');
  await operator.answer(caches.id, {
    ...{ answers: { 'Which caches?': ['SQLite', 'none of yours'] }, digest: caches.digest, clientId: 'b' },
  });
  await asked('Which queue?');
  await terminal.shows('queue?');
  terminal.type('\r');
  await operator.finished(1);
  expect(await outcomes()).toEqual(['answered', 'answered', 'answered']);

  for (const mode of ['accept edits on', 'plan mode on']) {
    terminal.type('\u001b[Z');
    await terminal.shows(mode);
  }
  await prompt(terminal, 'PLAN');
  const first = await asked('Approve the plan');
  expect(first.input).toMatchObject({ plan });
  await operator.answer(first.id, { behavior: 'deny', message: 'Say it again.', clientId: 'c' });
  const second = await asked('Approve the plan', first.id);
  await operator.answer(second.id, { behavior: 'allow', digest: second.digest, clientId: 'd' });
  const turns = await operator.finished(2);
  expect(requests(turns.slice(1)).map(({ outcome, message }) => [outcome, message])).toEqual([
    ['denied', 'Say it again.'],
    ['allowed', null],
  ]);
  const said = textsByTurn(turns).flat();
  expect(said).toEqual([
    expect.stringMatching(/"Which database\?"="Postgres".*"Which caches\?"="SQLite, none of yours"/),
    expect.stringContaining('"Which queue?"="SQLite"'),
    expect.stringContaining('User has approved your plan'),
  ]);
});

test('Claude Code in a terminal accepts dashboard decisions for permissions it shows', async () => {
  const never = new Promise<never>(() => {});
  const script = {
    turns: [
      turn(
        /START/,
        quickStep([bash('touch allowed', 'Allow me')]),
        quickStep([bash('touch denied', 'Deny me')]),
        quickStep([say('One of two.')]),
      ),
    ],
  };
  const stage = await terminalStage(server, script, { install: ['--permissions'], permit: () => never });
  const { operator } = stage;
  stage.type('START');
  const asked = (command: string) =>
    operator.until(command, (turns) =>
      requests(turns).find((one) => one.outcome === null && JSON.stringify(one.input).includes(command)),
    );
  const first = await asked('touch allowed');
  await operator.answer(first.id, { behavior: 'allow', digest: first.digest, clientId: 'a' });
  const second = await asked('touch denied');
  await operator.answer(second.id, { behavior: 'deny', message: 'Rather not.', clientId: 'b' });
  const turns = await operator.finished(1);
  expect(textsByTurn(turns)).toEqual([['One of two.']]);
  expect(requests(turns).map(({ outcome }) => outcome)).toEqual(['allowed', 'denied']);
  expect([existsSync(join(stage.cwd, 'allowed')), existsSync(join(stage.cwd, 'denied'))]).toEqual([true, false]);
});
