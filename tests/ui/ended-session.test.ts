import type { AgentSummary } from '@interlude/protocol/read-models';
import { expect, test } from 'vitest';
import { endOf } from '@/app/(console)/sessions/[sessionId]/session-foot';
import { aSession } from './rows';

const words = (status: object | null) =>
  endOf(aSession({ state: 'exited', stateReason: 'stopped', observations }), { id: 'a', status } as AgentSummary);

const observations = {
  session: { observedAt: 1, turnId: null, value: null },
  process: { observedAt: 5, turnId: null, value: { code: 0, signal: null, reason: 'stopped' } },
};

test('an ended session waits for its runner, except in the demo', () => {
  expect(words(null)).toBe('You can write again once the runner resumes this session. Its agent has ended: stopped.');
  expect(words({ source: 'demo' })).toBe('This session can’t receive messages. Its agent has ended: stopped.');
});
