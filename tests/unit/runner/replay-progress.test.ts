import { ReplayProgress } from '@interlude/runner/cli/replay';
import type { OutboxStatus } from '@interlude/runner/outbox/outbox';
import { expect, onTestFinished, test, vi } from 'vitest';

test('an outage is told as it begins and as it ends, however long it takes', async () => {
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
    "interlude: http://127.0.0.1:9 can't be reached (ECONNREFUSED); unsent records follow as soon as it answers\n",
    'interlude: the dashboard is back\n',
  ]);
});
