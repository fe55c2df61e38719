import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { runCli } from '../support/cli';
import { idleTerminals } from '../support/terminal-companion';

const { atWork, atRest, endTurn, turnsOf, texts, eventually } = idleTerminals();

describe('a listening agent', () => {
  test('receives a message that its interrupted turn did not read', async () => {
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

  test('keeps listening across a restart of its companion', async () => {
    const { send, listen, disconnect, connect, isWakeable, message } = await atRest();
    const { ended } = await listen();
    await disconnect();
    await connect();
    await eventually(isWakeable);
    const messageId = await send('Back?');
    expect((await ended).stdout).toContain('Back?');
    await eventually(async () => (await message(messageId))?.delivery === 'delivered');
  });

  test('receives nothing once its wait was killed', async () => {
    const { send, message, listen, isWakeable } = await atRest();
    const { process: wait } = await listen();
    wait.kill('SIGKILL');
    await eventually(async () => !(await isWakeable()));
    const messageId = await send('Anybody?');
    const { deliveryReason } = await eventually(async () => {
      const delivered = await message(messageId);
      return delivered?.delivery === 'failed' && delivered;
    });
    expect(deliveryReason).toMatch(/is idle\. Type there.*only if it listens/);
  });

  test('listens once: a second wait exits with the reason', async () => {
    const { listen, home } = await atRest();
    await listen();
    const { exitCode, stderr } = await runCli(['wait'], { INTERLUDE_DATA_DIR: home });
    expect([exitCode, stderr]).toEqual([
      1,
      "interlude: can't wait for messages: another wait already listens for this session\n",
    ]);
  });

  test('is notified when the wait times out', async () => {
    const { home } = await atRest();
    const { exitCode, stdout, stderr } = await runCli(['wait', '--for', '1'], { INTERLUDE_DATA_DIR: home });
    expect([exitCode, stdout, stderr]).toEqual([
      124,
      'No message arrived in this time. Run this command again only if you still want to receive messages.\n',
      '',
    ]);
  });

  test('stops waiting when the session ends', async () => {
    const { listen, hook } = await atRest();
    const { ended } = await listen();
    await hook('SessionEnd', { reason: 'prompt_input_exit' });
    expect(await ended).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('the terminal session was closed'),
    });
  });
});

describe('an idle agent', () => {
  test('is reminded to listen after a message was refused', async () => {
    const one = await atRest();
    expect(await endTurn(one)).toContain('additionalContext');
    await one.rest();
    const messageId = await one.send('Anybody?');
    await eventually(async () => (await one.message(messageId))?.delivery === 'failed');
    expect(await endTurn(one)).toContain('additionalContext');
  });

  test('is not reminded while it listens or after the hook held it', async () => {
    const one = await atRest();
    expect(await endTurn(one, { stop_hook_active: true })).toBe('');
    await one.rest();
    await one.listen();
    expect(await endTurn(one)).toBe('');
  });
});

test('a session without a person at the terminal is not reminded to listen', async () => {
  const { sessionId, hook, say } = await atWork(undefined, undefined, { offersToListen: true });
  const message = { id: randomUUID(), stop_reason: 'end_turn', content: [{ type: 'text', text: 'Done.' }] };
  say({ type: 'assistant', entrypoint: 'sdk-cli', message });
  await eventually(async () => texts(await turnsOf(sessionId)).includes('Done.'));
  expect(await hook('Stop', { stop_hook_active: false })).toBe('');
});
