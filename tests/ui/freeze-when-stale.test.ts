import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { ConnectionState } from '@/components/live/connection-state';
import { freezeWhenStale } from '@/components/live/live-provider';
import { clocksFrozenAt, freezeClocks } from '@/components/ui/clock';

const marks = new Set<string>();
beforeEach(() => {
  marks.clear();
  const toggleAttribute = (name: string, force: boolean) => void (force ? marks.add(name) : marks.delete(name));
  vi.stubGlobal('document', { documentElement: { toggleAttribute } });
});
afterEach(() => {
  vi.unstubAllGlobals();
  freezeClocks(null);
});

/** A page loaded at `loadedAt`, with a connection whose states the test sets. */
function page(loadedAt = 1_000) {
  let tell = () => {};
  const live = {
    state: { status: 'connecting', since: 0, attempt: 0, asOf: null } as ConnectionState,
    onState(listener: () => void) {
      tell = listener;
      return () => {};
    },
  };
  freezeWhenStale(live, loadedAt);
  return (status: ConnectionState['status'], asOf: number | null) => {
    live.state = { ...live.state, status, asOf };
    tell();
    return { isMarked: marks.has('data-stale'), until: clocksFrozenAt() };
  };
}

it('freezes the page at the last known time while it may miss events', () => {
  const enter = page();
  expect(enter('live', null)).toEqual({ isMarked: false, until: null });
  expect(enter('reconnecting', 5_000)).toEqual({ isMarked: true, until: 5_000 });
  expect(enter('signed-out', 5_000)).toEqual({ isMarked: true, until: 5_000 });
  expect(enter('gap', null)).toEqual({ isMarked: false, until: null });
});

it('knows a page that was never live up to its navigation, even if another tab knows less', () => {
  const enter = page();
  expect(enter('reconnecting', null)).toEqual({ isMarked: true, until: 1_000 });
  expect(enter('reconnecting', 400)).toEqual({ isMarked: true, until: 1_000 });
});

it('ignores the navigation time when the clock was set back before it', () => {
  const enter = page(Date.now() + 3_600_000);
  expect(enter('reconnecting', 5_000).until).toBe(5_000);
});
