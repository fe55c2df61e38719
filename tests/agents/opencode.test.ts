import { RUNNER_AWAY_MS } from '@interlude/protocol/limits';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ModelContext, ModelStep } from '../support/acp-model';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { missingOpencode, opencodeStage } from '../support/opencode-stage';
import { answering, assistantText, messages, Operator, requests, taskEnds, turnStates } from '../support/operator';

/** The real OpenCode, runner and dashboard. Only the model is scripted. */
const missing = missingOpencode();
if (missing !== null) process.stderr.write(`the tests of OpenCode are left out: ${missing}\n`);

let server: LiveServer;
beforeAll(async () => {
  if (missing === null) server = await startLiveServer();
});
afterAll(() => server?.stop());

const LONG =
  'A long answer that goes on, word by word, for as long as nobody breaks in on it, and then some more of it.';
const subagent = (prompt: string) => ({
  name: 'task',
  args: { description: 'Look around', prompt, subagent_type: 'general', background: true },
});

function script({ said: text, results }: ModelContext): ModelStep {
  const [word] =
    [...text.matchAll(/<task id|START|GUARDED|SLOWLY|QUICKLY|ASK|QUESTION|LONG|FAIL|WAIT|NEXT-\d/g)].at(-1) ?? [];
  if (word === undefined && results.length > 0) return { text: `It said: ${results.join(' ').slice(0, 60)}` };
  switch (word) {
    case 'START':
      return { text: 'I start it.', call: subagent('SLOWLY') };
    case 'GUARDED':
      return { text: 'I start it.', call: subagent('ASK') };
    case 'SLOWLY':
      return { text: 'I look around, slowly, and take my time over it, all of it.', paceMs: 150 };
    case 'ASK':
      return { text: 'I need a file.', call: { name: 'bash', args: { command: 'echo made', description: 'Make it' } } };
    case 'QUESTION': {
      const options = [
        { label: 'Red', description: 'warm' },
        { label: 'Blue', description: 'cold' },
      ];
      return {
        text: 'I ask.',
        call: { name: 'question', args: { questions: [{ question: 'Which?', header: 'Which', options }] } },
      };
    }
    case 'LONG':
      return { text: LONG, paceMs: 150 };
    case 'FAIL':
      return { error: 'scripted: no such thing' };
    case '<task id':
      return { text: 'The subagent is back.' };
    default:
      return { text: word === undefined ? 'OK.' : `Reply to ${word}.` };
  }
}

describe.skipIf(missing !== null)('a live OpenCode', () => {
  test('reports in a between-run turn when its subagent is done', async () => {
    const { operator, runner } = await opencodeStage(server, script);
    await runner();
    await expect.poll(() => operator.session()).toMatchObject({ turnCount: 0 });
    const first = await operator.send('START');
    await operator.until('the subagent', (turns) => answering(turns, first)?.state === 'finished');
    const second = await operator.send('NEXT-1');
    const turns = await operator.finished(3);
    expect(assistantText(answering(turns, first))).toContain('I start it.');
    expect(assistantText(answering(turns, second))).toBe('Reply to NEXT-1.');
    const [task] = await operator.tasks();
    expect(task).toMatchObject({ description: 'Look around', status: 'completed' });
    const woken = turns.filter(({ kind }) => kind === 'between-run');
    expect(woken.map(assistantText)).toEqual(['The subagent is back.']);
    expect(woken[0]?.trigger).toMatchObject({ kind: 'task', taskIds: [task?.id] });
    expect(taskEnds(turns).map(({ id }) => id)).toEqual([task?.id]);
    expect(messages(turns, 'user').map(({ delivery }) => delivery)).toEqual(['seen', 'seen']);
  });

  test('receives its workspace and --prompt once in a new session', async () => {
    const heard: string[] = [];
    const listens = (context: ModelContext): ModelStep => {
      if (/Build it\.|NEXT-1/.test(context.said)) heard.push(context.said);
      return { text: 'OK.' };
    };
    const INTERLUDE_WORKSPACE = JSON.stringify({ symlinks: ['node_modules'] });
    const { sessionId, runner, killRunner } = await opencodeStage(server, listens, { INTERLUDE_WORKSPACE });
    const named = `named-${sessionId}`;
    const operator = new Operator(server, named);
    await runner('--session', named, '--prompt', 'Build it.');
    expect(turnStates(await operator.finished(1))).toEqual(['user finished']);
    await killRunner();
    await runner('--session', named, '--prompt', 'Build it.');
    await operator.send('NEXT-1');
    const turns = await operator.finished(2);
    expect(messages(turns, 'user').map(({ text }) => text)).toEqual(['Build it.', 'NEXT-1']);
    const words = heard.map((text) => [/symbolic links/.exec(text)?.[0], /Build it\.|NEXT-1/.exec(text)?.[0]]);
    expect(words).toEqual([
      ['symbolic links', 'Build it.'],
      [undefined, 'NEXT-1'],
    ]);
  });

  test('accepts an answer to its subagent’s permission between turns from another runner', async () => {
    const { operator, runner, killRunner } = await opencodeStage(server, script);
    await runner();
    await expect.poll(() => operator.session()).not.toBeNull();
    await operator.send('GUARDED');
    const asked = await operator.until('the request', (turns) => requests(turns)[0]);
    expect(asked).toMatchObject({ toolName: 'bash', input: { metadata: { command: 'echo made' } } });
    await operator.until('the turn', (turns) =>
      turns.some(({ kind, state }) => kind === 'user' && state === 'finished'),
    );
    await killRunner();
    await runner();
    await operator.answer(asked.id, { behavior: 'allow', optionId: 'once', digest: asked.digest });
    const turns = await operator.finished(2);
    expect(turnStates(turns)).toEqual(['user finished', 'between-run finished']);
    expect(requests(await operator.turns())).toMatchObject([{ outcome: 'allowed' }]);
  });

  test('handles an answered question, a denied permission, an interrupted and a failed turn', async () => {
    const { operator, runner } = await opencodeStage(server, script);
    await runner();
    await expect.poll(() => operator.session()).not.toBeNull();
    const question = await operator.send('QUESTION');
    const asked = await operator.until('the question', (turns) => requests(turns)[0]);
    await operator.answer(asked.id, { answers: { 'Which?': 'Blue' }, digest: asked.digest });
    const answered = await operator.until('the answer', (turns) => {
      const turn = answering(turns, question);
      return turn?.state === 'finished' && turn;
    });
    expect(assistantText(answered)).toContain('"Which?"="Blue"');
    const refused = await operator.send('ASK');
    const permission = await operator.until('the request', (turns) => requests(turns)[1]);
    await operator.answer(permission.id, { behavior: 'deny', optionId: 'reject', digest: permission.digest });
    await operator.until('its end', (turns) => answering(turns, refused)?.state === 'interrupted');
    const long = await operator.send('LONG');
    await operator.until('its beginning', (turns) => assistantText(answering(turns, long)).includes('long answer'));
    await operator.interrupt();
    await operator.until('its end', (turns) => answering(turns, long)?.state === 'interrupted');
    const failing = await operator.send('FAIL');
    await operator.until('its end', (turns) => answering(turns, failing)?.state === 'failed');
    const next = await operator.send('NEXT-1');
    const turns = await operator.finished(5);
    expect(assistantText(answering(turns, next))).toBe('Reply to NEXT-1.');
  });

  test('has no gaps after a broken connection or a killed runner', async () => {
    const { operator, runner, line, terminal, killRunner } = await opencodeStage(server, script);
    await runner();
    await expect.poll(() => operator.session()).not.toBeNull();
    await terminal.say('NEXT-1');
    await operator.finished(1);
    line.swallow();
    for (const word of ['NEXT-2', 'NEXT-3']) {
      await terminal.say(word);
      await terminal.idle();
    }
    line.mend();
    await operator.finished(3);
    await terminal.say('LONG');
    await operator.until('its beginning', (turns) => assistantText(turns.at(-1)).includes('long answer'));
    await killRunner();
    await terminal.idle();
    await terminal.say('NEXT-4');
    await terminal.idle();
    await runner();
    const turns = await operator.finished(5);
    expect(turnStates(turns)).toEqual(Array(5).fill('user finished'));
    expect(turns.map(assistantText)).toEqual([
      ...['NEXT-1', 'NEXT-2', 'NEXT-3'].map((word) => `Reply to ${word}.`),
      LONG,
      'Reply to NEXT-4.',
    ]);
    expect(messages(turns, 'user').map(({ text }) => text)).toEqual(['NEXT-1', 'NEXT-2', 'NEXT-3', 'LONG', 'NEXT-4']);
  });

  test('shows no work after being killed in a turn, and continues after a restart', async () => {
    const { operator, runner, killServer, startServer } = await opencodeStage(server, script);
    await runner();
    await expect.poll(() => operator.session()).not.toBeNull();
    const long = await operator.send('LONG');
    await operator.until('its beginning', (turns) => assistantText(answering(turns, long)).includes('long answer'));
    await killServer();
    await operator.until('its end', (turns) => answering(turns, long)?.state === 'failed');
    await startServer();
    await expect
      .poll(async () => (await operator.session())?.state, { timeout: RUNNER_AWAY_MS * 3 })
      .not.toBe('unknown');
    const next = await operator.send('NEXT-1');
    const turns = await operator.finished(2);
    expect(assistantText(answering(turns, next))).toBe('Reply to NEXT-1.');
  });
});
