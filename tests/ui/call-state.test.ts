import { describe, expect, test } from 'vitest';
import { callState } from '@/components/transcript/call-state';

describe('the state of a call that waits for permission', () => {
  const asked = { outcome: null, answer: null };

  test.each([
    ['running', 'waiting'],
    // its turn has ended, and the request is still open
    ['unknown', 'waiting'],
    ['completed', 'completed'],
    ['failed', 'failed'],
  ] as const)('and is %s shows as %s', (status, standing) => {
    expect(callState({ status }, asked, false)).toBe(standing);
  });
});
