import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { MessageItem, SessionDetail, Turn } from '@/lib/protocol/read-models';
import { controlPath, readControlFile } from '@/lib/runner/control-port/control-file';
import { runCli, startCli } from '../support/cli';
import { overHttp } from '../support/over-http';
import { inProcessServer, type ServerTarget } from '../support/server-target';
import { tempDir } from '../support/temp-dir';
import { playedTerminals } from '../support/terminal-companion';

/** Messages for an idle terminal: its agent listens by `interlude wait`, which is the real one here. */

let server: ServerTarget;
let http: Awaited<ReturnType<typeof overHttp>>;
beforeAll(async () => {
  server = await inProcessServer();
  http = await overHttp(server);
});
afterAll(async () => {
  await http.close();
  await server.close();
});

const { atWork, read, turnsOf, texts, post, eventually } = playedTerminals(() => ({ server, url: http.url }));
const messagesOf = (turns: readonly Turn[]) =>
  turns.flatMap(({ items }) => items.filter((item): item is MessageItem => item.kind === 'message'));

/** A terminal that has come to rest. */
async function atRest() {
  const agentId = randomUUID();
  const one = await atWork(agentId, undefined, { offersToListen: true });
  const { sessionId, home, hook, assistant, say } = one;
  const rest = async () => {
    assistant('It is built.', 'end_turn');
    expect(await hook('Stop', { stop_hook_active: true })).toBe('');
    say({ type: 'system', subtype: 'turn_duration', durationMs: 9 });
    await eventually(async () => (await turnsOf(sessionId)).every(({ state }) => state !== 'open'));
  };
  await rest();
  const send = async (text: string) =>
    (await post(`/sessions/${sessionId}/messages`, { text, clientId: text })).messageId as string;
  const message = async (id: string) => messagesOf(await turnsOf(sessionId)).find((item) => item.id === id);
  const isWakeable = async () => ((await read(`/sessions/${sessionId}`)) as SessionDetail).session.wakeable === true;
  /** The agent starts the command in a turn of its own, and comes to rest. */
  const listen = async () => {
    await hook('UserPromptSubmit', { prompt: 'Listen' });
    one.prompt('Listen');
    const run = startCli(['wait'], { INTERLUDE_DATA_DIR: home });
    onTestFinished(() => void run.process.kill('SIGKILL'));
    const id = `toolu_${randomUUID()}`;
    const call = { type: 'tool_use', id, name: 'Bash', input: { command: 'interlude wait' } };
    say({ type: 'assistant', message: { id: randomUUID(), stop_reason: 'tool_use', content: [call] } });
    const content = [{ type: 'tool_result', tool_use_id: id, content: 'It runs in the background.' }];
    say({ type: 'user', message: { role: 'user', content }, toolUseResult: { backgroundTaskId: 't1' } });
    await eventually(isWakeable);
    await rest();
    return { ...run, call };
  };
  /** Claude Code wakes its agent: a background command has ended. */
  const wakes = (toolUseId: string) => {
    const said = `<task-id>t1</task-id>\n<tool-use-id>${toolUseId}</tool-use-id>\n<status>completed</status>`;
    const content = `<task-notification>\n${said}\n<summary>Background command "Wait" completed</summary>\n</task-notification>`;
    say({ type: 'user', message: { role: 'user', content }, origin: { kind: 'task-notification' } });
  };
  /** A call of a wait, without the command around it. */
  const ask = async (path: string) => {
    const control = await readControlFile(controlPath(home, 'hooks'));
    const headers = { authorization: `Bearer ${control?.secret}` };
    const response = await fetch(`${control?.url}${path}`, { method: 'POST', headers });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  };
  const askAs = (waitId: string, within = 20) => ask(`/wait?pid=${process.pid}&id=${waitId}&within=${within}`);
  return { ...one, agentId, rest, send, message, isWakeable, listen, wakes, ask, askAs };
}

describe('an agent that listens', () => {
  test('is woken by a message, which the turn that begins so answers', async () => {
    const { sessionId, send, message, listen, wakes, assistant, rest, isWakeable } = await atRest();
    const { ended, call } = await listen();
    const messageId = await send('Is it\nwarm?');
    const { exitCode, stdout } = await ended;
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^Someone waits for a reply from you:\n\nA message from the dashboard, by operator, .*UTC:\nIs it\nwarm\?\n/,
    );
    await eventually(async () => (await message(messageId))?.delivery === 'delivered');
    await eventually(async () => !(await isWakeable()));
    wakes(call.id);
    assistant('Quite warm.');
    await rest();
    const turns = await eventually(async () => {
      const all = await turnsOf(sessionId);
      return all.some((turn) => turn.state === 'finished' && turn.userMessageIds.includes(messageId)) && all;
    });
    const woken = turns.filter(({ userMessageIds }) => userMessageIds.includes(messageId));
    expect(woken).toMatchObject([{ kind: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] } }]);
    expect(texts(woken)).toEqual(['Is it\nwarm?', 'Quite warm.', 'It is built.']);
    expect(messagesOf(turns).find(({ text }) => text === 'Quite warm.')?.replyTo).toEqual([messageId]);
    expect((await message(messageId))?.delivery).toBe('seen');
  });

  test('is given what comes while it works at the end of its turn, and not by its wait as well', async () => {
    const { send, listen, hook, prompt, isWakeable } = await atRest();
    const { process: wait } = await listen();
    await hook('UserPromptSubmit', { prompt: 'More' });
    prompt('More');
    await send('How far?');
    const held = await eventually(async () => {
      const answer = await hook('Stop', { stop_hook_active: false });
      return answer.includes('How far?') && answer;
    });
    expect(held).toContain('"decision":"block"');
    expect([wait.exitCode, await isWakeable()]).toEqual([null, true]);
  });

  test('is given what its broken off turn did not come to', async () => {
    const { send, listen, hook, prompt, say, sessionId, message } = await atRest();
    const { ended } = await listen();
    await hook('UserPromptSubmit', { prompt: 'More' });
    prompt('More');
    await eventually(async () => texts(await turnsOf(sessionId)).includes('More'));
    const messageId = await send('How far?');
    await eventually(async () => await message(messageId));
    const content = [{ type: 'text', text: '[Request interrupted by user]' }];
    say({ type: 'user', message: { role: 'user', content } });
    expect((await ended).stdout).toContain('How far?');
  });

  test('goes on listening over a restart of its companion', async () => {
    const { send, listen, disconnect, connect, isWakeable, message } = await atRest();
    const { ended } = await listen();
    await disconnect();
    await connect();
    await eventually(isWakeable);
    const messageId = await send('Back?');
    expect((await ended).stdout).toContain('Back?');
    await eventually(async () => (await message(messageId))?.delivery === 'delivered');
  });

  test('has its message given to the next one, and marked, when its wait was handed it and died', async () => {
    const { send, message, askAs, isWakeable } = await atRest();
    const handed = askAs('w1');
    await eventually(isWakeable);
    const messageId = await send('Are you there?');
    expect((await handed).body).toMatchObject({
      kind: 'message',
      text: expect.stringContaining('UTC:\nAre you there?'),
    });
    // It does not say that it has shown it. The next one is told once that is clear.
    const again = await askAs('w2');
    expect(again.body.text).toContain('UTC (it may have reached you before):\nAre you there?');
    expect((await message(messageId))?.delivery).toBe('queued');
  });

  test('has said once that it was shown: not twice, and not what was never handed', async () => {
    const { send, message, ask, askAs, isWakeable } = await atRest();
    const handed = askAs('w1');
    await eventually(isWakeable);
    const messageId = await send('Are you there?');
    const claim = (await handed).body.claim ?? '';
    expect(await ask(`/wait/taken?claim=${claim}`)).toMatchObject({ status: 200 });
    expect(await ask(`/wait/taken?claim=${claim}`)).toMatchObject({ status: 404 });
    await eventually(async () => (await message(messageId))?.delivery === 'delivered');
  });

  test('is not written to any more once its wait is gone', async () => {
    const { send, message, listen, isWakeable } = await atRest();
    const { process: wait } = await listen();
    wait.kill('SIGKILL');
    await eventually(async () => !(await isWakeable()));
    const messageId = await send('Anybody?');
    const { deliveryReason } = await eventually(async () => {
      const said = await message(messageId);
      return said?.delivery === 'failed' && said;
    });
    expect(deliveryReason).toMatch(/is idle: type there.*only if its agent listens/);
  });

  test('listens once: a second wait ends at once and says why', async () => {
    const { listen, home } = await atRest();
    await listen();
    const { exitCode, stderr } = await runCli(['wait'], { INTERLUDE_DATA_DIR: home });
    expect([exitCode, stderr]).toEqual([
      1,
      'interlude: no message can be waited for: another wait listens for this session already\n',
    ]);
  });

  test('is told when its time is over, and that it need not listen again', async () => {
    const { home } = await atRest();
    const { exitCode, stdout, stderr } = await runCli(['wait', '--for', '1'], { INTERLUDE_DATA_DIR: home });
    expect([exitCode, stdout, stderr]).toEqual([
      124,
      'No message came in this time. Start this again only if you still want to be reached.\n',
      '',
    ]);
  });

  test('ends its wait when the session ends', async () => {
    const { listen, hook } = await atRest();
    const { ended } = await listen();
    await hook('SessionEnd', { reason: 'prompt_input_exit' });
    expect(await ended).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('the terminal session was left'),
    });
  });
});

describe('an agent that comes to rest', () => {
  const offer = async (one: Awaited<ReturnType<typeof atRest>>, more: object = {}) => {
    const { hook, prompt } = one;
    await hook('UserPromptSubmit', { prompt: 'More' });
    prompt('More');
    return await hook('Stop', { stop_hook_active: false, ...more });
  };

  test('is told once that it can listen, not as a block', async () => {
    const one = await atRest();
    const said = JSON.parse(await offer(one));
    expect(said).toEqual({
      hookSpecificOutput: {
        hookEventName: 'Stop',
        additionalContext: expect.stringMatching(/node \S+interlude\.mjs wait/),
      },
    });
    await one.rest();
    expect(await offer(one)).toBe('');
  });

  test('is told again after a message was refused because it did not listen', async () => {
    const one = await atRest();
    expect(await offer(one)).toContain('additionalContext');
    await one.rest();
    const messageId = await one.send('Anybody?');
    await eventually(async () => (await one.message(messageId))?.delivery === 'failed');
    expect(await offer(one)).toContain('additionalContext');
  });

  test('is not told while it listens, nor when it has been held already', async () => {
    const one = await atRest();
    expect(await offer(one, { stop_hook_active: true })).toBe('');
    await one.rest();
    await one.listen();
    expect(await offer(one)).toBe('');
  });
});

test('a session that nobody sits before is not told to listen: it would wait for that to end', async () => {
  const { sessionId, hook, say } = await atWork(undefined, undefined, { offersToListen: true });
  const message = { id: randomUUID(), stop_reason: 'end_turn', content: [{ type: 'text', text: 'Done.' }] };
  say({ type: 'assistant', entrypoint: 'sdk-cli', message });
  await eventually(async () => texts(await turnsOf(sessionId)).includes('Done.'));
  expect(await hook('Stop', { stop_hook_active: false })).toBe('');
});

test.each([
  [[], 1, 'the companion of terminals is not running'],
  [['--for', 'ever'], 2, '--for is a number of seconds'],
  [['now'], 2, 'it takes options only'],
])('wait %j ends with %i and one line that says why, where no companion is', async (args, exitCode, words) => {
  const end = await runCli(['wait', ...args], { INTERLUDE_DATA_DIR: await tempDir() });
  expect(end.exitCode).toBe(exitCode);
  expect(end.stderr).toContain(words);
  expect(end.stderr.trim().split('\n')).toHaveLength(1);
});
