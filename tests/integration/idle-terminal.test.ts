import { describe, expect, test } from 'vitest';
import { callCli } from '../support/cli-in-process';
import { tempDir } from '../support/temp-dir';
import { idleTerminals, messagesOf } from '../support/terminal-companion';

const { atRest, endTurn, turnsOf, texts, eventually } = idleTerminals();

describe('a listening agent', () => {
  test('a listening agent is woken by a message, which its next turn answers', async () => {
    const { sessionId, send, message, listen, wakes, assistant, rest, isWakeable } = await atRest();
    const { ended, call } = await listen();
    const messageId = await send('Is it\nwarm?');
    const { exitCode, stdout } = await ended;
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^A message is waiting for your reply:\n\nMessage from operator, .*UTC:\nIs it\nwarm\?\n/);
    await eventually(async () => (await message(messageId))?.delivery === 'delivered');
    await eventually(async () => !(await isWakeable()));
    wakes(call.id);
    assistant('Quite warm.');
    await rest();
    const turns = await eventually(async () => {
      const all = await turnsOf(sessionId);
      return all.some((turn) => turn.state === 'finished' && turn.userMessageIds.includes(messageId)) && all;
    });
    const answering = turns.filter(({ userMessageIds }) => userMessageIds.includes(messageId));
    expect(answering).toMatchObject([{ kind: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] } }]);
    expect(texts(answering)).toEqual(['Is it\nwarm?', 'Quite warm.', 'It is built.']);
    expect(messagesOf(turns).find(({ text }) => text === 'Quite warm.')?.replyTo).toEqual([messageId]);
    expect((await message(messageId))?.delivery).toBe('seen');
  });

  test('a listening agent receives messages sent during its turn at the turn’s end, and not again from its wait', async () => {
    const { send, listen, hook, prompt, isWakeable } = await atRest();
    const { process: wait } = await listen();
    await hook('UserPromptSubmit', { prompt: 'More' });
    prompt('More');
    await send('How far?');
    const output = await eventually(async () => {
      const answer = await hook('Stop', { stop_hook_active: false });
      return answer.includes('How far?') && answer;
    });
    expect(output).toContain('"decision":"block"');
    expect([wait.exitCode, await isWakeable()]).toEqual([null, true]);
  });

  test('receives a message again, marked as a repeat, when the wait that printed it died', async () => {
    const { send, message, askAs, isWakeable } = await atRest();
    const handed = askAs('w1');
    await eventually(isWakeable);
    const messageId = await send('Are you there?');
    expect((await handed).body).toMatchObject({
      kind: 'message',
      text: expect.stringContaining('UTC:\nAre you there?'),
    });
    // The wait does not confirm printing, so the next wait repeats the message once that is clear.
    const again = await askAs('w2');
    expect(again.body.text).toContain('UTC (it may have reached you before):\nAre you there?');
    expect((await message(messageId))?.delivery).toBe('queued');
  });

  test('confirms a message once', async () => {
    const { send, message, ask, askAs, isWakeable } = await atRest();
    const handed = askAs('w1');
    await eventually(isWakeable);
    const messageId = await send('Are you there?');
    const claim = (await handed).body.claim ?? '';
    expect(await ask(`/wait/taken?claim=${claim}`)).toMatchObject({ status: 200 });
    expect(await ask(`/wait/taken?claim=${claim}`)).toMatchObject({ status: 404 });
    await eventually(async () => (await message(messageId))?.delivery === 'delivered');
  });
});

describe('an idle agent', () => {
  test('is notified once that it can listen, without being blocked', async () => {
    const one = await atRest();
    const output = JSON.parse(await endTurn(one));
    expect(output).toEqual({
      hookSpecificOutput: {
        hookEventName: 'Stop',
        additionalContext: expect.stringMatching(/node \S+interlude\.mjs wait/),
      },
    });
    await one.rest();
    expect(await endTurn(one)).toBe('');
  });
});

test.each([
  [[], 1, 'the companion for terminals is not running'],
  [['--for', 'ever'], 2, '--for must be a number of seconds'],
  [['now'], 2, 'this command takes options only'],
])('wait %j exits with %i and one line with the reason', async (args, exitCode, words) => {
  const end = await callCli(['wait', ...args], { INTERLUDE_DATA_DIR: await tempDir() });
  expect(end.exitCode).toBe(exitCode);
  expect(end.stderr).toContain(words);
  expect(end.stderr.trim().split('\n')).toHaveLength(1);
});
