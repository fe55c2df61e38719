import { type ReplayOutcome, ReplayProgress, replayFailure } from '@interlude/runner/cli/replay';
import type { Trouble } from '@interlude/runner/outbox/drain';
import type { OutboxStatus } from '@interlude/runner/outbox/outbox';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

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

describe('replayFailure', () => {
  test('names an unreachable server', () => {
    expect(replayFailure({ ...fine, waiting: 7, trouble: trouble('unavailable', 'ECONNREFUSED') })).toBe(
      "http://127.0.0.1:4319 can't be reached: ECONNREFUSED (7 records stay in the outbox; run the same command to send them)",
    );
  });

  test('names a server that refuses the token', () => {
    const failure = replayFailure({ ...fine, waiting: 7, trouble: trouble('unauthorized', 'unauthenticated') });
    expect(failure).toMatch(/^http:\/\/127\.0\.0\.1:4319: unauthenticated \(7 records.+; give it another token\)$/);
  });

  test('fails if every record was quarantined, but not if some were', () => {
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

test('reports the start and end of an outage once', async () => {
  const told: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => told.push(String(text)) > 0);
  vi.useFakeTimers();
  onTestFinished(() => {
    write.mockRestore();
    vi.useRealTimers();
  });
  const progress = new ReplayProgress(10, async () => ({ url: 'http://127.0.0.1:9', token: undefined }));
  const after = (tries: number): OutboxStatus => ({
    state: tries > 0 ? 'waiting' : 'idle',
    producer: { id: 'replay', epoch: 1 },
    waiting: tries,
    lastSeq: 10,
    trouble: tries > 0 ? { kind: 'unavailable', message: 'ECONNREFUSED', since: 0, tries, retryAt: null } : null,
  });
  for (const tries of [0, 1, 2, 3, 4, 0, 0]) {
    progress.status(after(tries));
    await vi.advanceTimersByTimeAsync(8_000);
  }
  expect(told).toEqual([
    "interlude: http://127.0.0.1:9 can't be reached (ECONNREFUSED); sending unsent records when it responds\n",
    'interlude: reconnected to the dashboard\n',
  ]);
});
