import { type ReplayOutcome, replayFailure } from '@interlude/runner/cli/replay';
import type { Trouble } from '@interlude/runner/outbox/drain';
import { describe, expect, test } from 'vitest';

const fine: ReplayOutcome = {
  url: 'http://127.0.0.1:4319',
  trouble: null,
  waiting: 0,
  acknowledged: 40,
  logLines: 0,
  quarantined: 0,
  quarantineReason: null,
  tokenAdvice: 'give it another token',
};
const trouble = (kind: Trouble['kind'], message: string): Trouble => ({
  kind,
  message,
  since: 0,
  tries: 3,
  retryAt: null,
});

describe('what a replay fails with', () => {
  test('an unreachable server is named by its address', () => {
    expect(replayFailure({ ...fine, waiting: 7, trouble: trouble('unavailable', 'ECONNREFUSED') })).toBe(
      "http://127.0.0.1:4319 can't be reached: ECONNREFUSED (7 records stay in the outbox; run the same command to send them)",
    );
  });

  test('so is one that refuses the token', () => {
    const failure = replayFailure({ ...fine, waiting: 7, trouble: trouble('unauthorized', 'unauthenticated') });
    expect(failure).toMatch(/^http:\/\/127\.0\.0\.1:4319: unauthenticated \(7 records.+; give it another token\)$/);
  });

  test('everything in quarantine is a failure, with or without the agent’s arrival; a part of it is none', () => {
    for (const quarantined of [39, 40]) {
      expect(replayFailure({ ...fine, quarantined, quarantineReason: 'why' })).toContain('every record');
    }
    expect(replayFailure({ ...fine, quarantined: 38, quarantineReason: 'why' })).toBeNull();
    expect(replayFailure({ ...fine, quarantined: 29, logLines: 10, quarantineReason: 'why' })).toContain(
      'every record',
    );
    expect(replayFailure(fine)).toBeNull();
  });
});
