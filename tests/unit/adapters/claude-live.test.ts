import { ClaudeAdapter } from '@interlude/runner/adapters/claude/claude-adapter';
import { describe, expect, test } from 'vitest';

/** Cases that only a live connection produces. */

function adapter() {
  let count = 0;
  return new ClaudeAdapter({ sessionId: 's', newRunId: () => `run-${++count}` });
}

describe('a message already in the log', () => {
  test('is not repeated, and its turn names it', () => {
    const live = adapter();
    live.delivered('m1');
    expect(live.sent({ type: 'user', uuid: 'm1', message: { role: 'user', content: 'hello' } }, 1)).toEqual([]);
    // An older CLI, whose init names no message.
    const [started] = [
      ...live.read({ type: 'system', subtype: 'init', uuid: 'i' }, 2),
      ...live.read({ type: 'assistant', uuid: 'a', message: { id: 'x', content: [{ type: 'text', text: 'Hi' }] } }, 3),
    ].filter(({ event }) => event.type === 'RUN_STARTED');
    expect(started?.event.metadata?.interlude).toMatchObject({ turn: 'user', userMessageIds: ['m1'] });
  });
});

describe('a request with a time limit', () => {
  const ask = { tool: 'Bash', input: { command: 'ls' }, toolUseID: 't1', expiresAt: 99 };

  test('has its deadline and expires', () => {
    const live = adapter();
    expect(live.requestOpened(ask, 1)[0]?.event.value).toMatchObject({ request_id: 't1', expires_at: 99 });
    const answer = { behavior: 'deny', outcome: 'expired', message: 'Nobody answered in time.' };
    expect(live.requestAnswered('t1', answer, 2)[0]?.event.value).toEqual({
      request_id: 't1',
      outcome: 'expired',
      message: 'Nobody answered in time.',
    });
  });

  test('is cancelled when withdrawn', () => {
    const live = adapter();
    live.requestOpened(ask, 1);
    const [resolved] = live.requestAnswered('t1', { behavior: 'deny', outcome: 'cancelled' }, 2);
    expect(resolved?.event.value).toMatchObject({ outcome: 'cancelled' });
  });
});

describe('a process whose session continues', () => {
  test('ends with a notice instead of the session', () => {
    const live = adapter();
    const out = live.ended(1, { reason: 'ended by SIGKILL', exitCode: null, goesOn: 'It is started again in 0.5 s.' });
    expect(out.map(({ event }) => [event.name, event.value])).toEqual([
      [
        'interlude:notice',
        { text: 'The agent’s process ended (ended by SIGKILL). It is started again in 0.5 s.', tone: 'warning' },
      ],
    ]);
  });
});
