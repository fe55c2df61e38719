import { RecordSink } from '@interlude/runner/host/record-sink';
import type { OutgoingRecord } from '@interlude/runner/outbox/outbox';
import { describe, expect, test } from 'vitest';

function event(name: string): OutgoingRecord {
  return { kind: 'event', agentId: 'a', sessionId: 's', occurredAt: 1, event: { type: 'CUSTOM', name } };
}

/** A disk that fails writes while it is full. */
function disk() {
  const stored: string[] = [];
  const state = { full: false, tries: 0 };
  const told: string[] = [];
  const enqueue = async (records: OutgoingRecord[]) => {
    state.tries += 1;
    if (state.full) throw new Error('SQLITE_FULL');
    for (const one of records)
      stored.push(one.kind === 'lost' ? `lost ${one.lost.count}` : String(one.kind === 'event' && one.event.name));
  };
  return { stored, state, told, enqueue, onTrouble: (message: string) => void told.push(message) };
}

describe('a record that the disk rejects', () => {
  test('is buffered, stored in order later, and reported once', async () => {
    const { stored, state, told, ...options } = disk();
    const sink = new RecordSink({ ...options, retryMs: 1 });
    state.full = true;
    const first = sink.accept([event('1'), event('2')]);
    const second = sink.accept([event('3')]);
    await expect.poll(() => state.tries).toBeGreaterThan(3);
    expect(stored).toEqual([]);
    state.full = false;
    await Promise.all([first, second]);
    expect(stored).toEqual(['1', '2', '3']);
    expect(told).toEqual([expect.stringContaining('SQLITE_FULL')]);
  });

  test('is declared lost in its place when the buffer is full', async () => {
    const { stored, state, ...options } = disk();
    const sink = new RecordSink({ ...options, retryMs: 1, maxBuffered: 3 });
    state.full = true;
    void sink.accept([event('1'), event('2')]);
    await expect.poll(() => state.tries).toBeGreaterThan(1);
    void sink.accept([event('3'), event('4')]);
    void sink.accept([event('5')]);
    state.full = false;
    await sink.accept([]);
    expect(stored).toEqual(['1', '2', 'lost 3']);
    await sink.accept([event('6')]);
    expect(stored.at(-1)).toBe('6');
  });

  test('does not keep the runner from closing', async () => {
    const { state, told, stored, ...options } = disk();
    const sink = new RecordSink({ ...options, retryMs: 60_000 });
    state.full = true;
    void sink.accept([event('1')]);
    await expect.poll(() => state.tries).toBe(1);
    await sink.close();
    expect(stored).toEqual([]);
    expect(told.at(-1)).toContain('1 record(s) lost: the outbox did not store them');
  });
});
