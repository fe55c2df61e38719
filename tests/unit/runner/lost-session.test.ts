import { GONE, type RpcResponse } from '@interlude/runner/sources/acp/acp-connection';
import { SessionRecovery, type SessionRecoveryOptions } from '@interlude/runner/sources/acp/prompt-queue';
import { expect, test } from 'vitest';

const TAKEN: RpcResponse = { result: {}, error: null };
const LOST: RpcResponse = { result: {}, error: { code: -32_002, message: 'Resource not found', about: 'n' } };
const message = (messageId: string) => ({ messageId, text: messageId });

function lostSession(answers: RpcResponse[], options: Partial<SessionRecoveryOptions> = {}) {
  const done: string[] = [];
  const session = new SessionRecovery({
    nativeId: () => 'n',
    send: async ({ messageId }) => {
      done.push(`give ${messageId}`);
      return answers.shift() ?? LOST;
    },
    isUnprocessed: () => true,
    reload: async () => {
      done.push('reload');
      return null;
    },
    restart: async () => void done.push('restart'),
    patienceMs: 60_000,
    ...options,
  });
  return { session, done };
}

test('resends refused messages in order after one reload', async () => {
  const { session, done } = lostSession([LOST, LOST, TAKEN, TAKEN]);
  const answers = await Promise.all([session.prompt(message('a')), session.prompt(message('b'))]);
  expect(answers).toEqual([TAKEN, TAKEN]);
  expect(done).toEqual(['give a', 'give b', 'reload', 'give a', 'give b']);
});

test('does not resend a message that a turn processed', async () => {
  const { session, done } = lostSession([LOST], { isUnprocessed: () => false });
  expect(await session.prompt(message('a'))).toEqual(LOST);
  expect(done).toEqual(['give a', 'reload']);
});

test('restarts after a failed reload, and gives up after a second one', async () => {
  const { session, done } = lostSession([]);
  expect(await session.prompt(message('a'))).toEqual(GONE);
  expect(done).toEqual(['give a', 'reload', 'give a', 'restart']);
  expect(session.exited()).toEqual({
    reason: 'it lost its session: Resource not found',
    unprocessed: [message('a')],
    fatal: null,
  });
  expect(session.exited()).toBeNull();
  await session.prompt(message('a'));
  expect(session.exited()?.fatal).toMatch(/neither a reload nor a restart helped/);
});

test('allows another restart after an accepted prompt', async () => {
  const { session } = lostSession([LOST, LOST, TAKEN]);
  await session.prompt(message('a'));
  session.exited();
  await session.prompt(message('b'));
  await session.prompt(message('c'));
  expect(session.exited()?.fatal).toBeNull();
});

test('restarts when a reload times out', async () => {
  const { session, done } = lostSession([], { reload: () => new Promise(() => {}), patienceMs: 5 });
  expect(await session.prompt(message('a'))).toEqual(GONE);
  expect(done).toEqual(['give a', 'restart']);
});

test('treats an exit during a reload as an ordinary exit', async () => {
  const { session, done } = lostSession([], { reload: async () => GONE.error });
  expect(await session.prompt(message('a'))).toEqual(GONE);
  expect(done).toEqual(['give a']);
  expect(session.exited()).toBeNull();
});
