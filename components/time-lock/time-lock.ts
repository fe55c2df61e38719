'use client';

import type { Task, Turn } from '@interlude/protocol/read-models';
import { useCallback, useMemo, useState } from 'react';
import type { TimeLock } from '@/components/ui/time-lock';

/**
 * The turn or task that the log is locked to, and its span. The span grows while the turn or task runs, and keeps its
 * identity while it is unchanged, so that the log scrolls once.
 */
export function useTimeLock(options: { turns: readonly Turn[]; tasks: readonly Task[]; onLock: () => void }) {
  const { turns, tasks, onLock } = options;
  const [lockedAnchor, setLockedAnchor] = useState<string | null>(null);
  const found = lockedAnchor === null ? null : spanOf(lockedAnchor, turns, tasks);
  const [from, to] = [found?.from ?? null, found?.to ?? null];
  const span = useMemo((): Span | null => (from === null || to === null ? null : { from, to }), [from, to]);

  const toggle = useCallback(
    (anchor: string) => {
      setLockedAnchor((before) => (before === anchor ? null : anchor));
      if (lockedAnchor !== anchor) onLock();
    },
    [lockedAnchor, onLock],
  );
  const release = useCallback(() => setLockedAnchor(null), []);
  const lock = useMemo((): TimeLock => ({ lockedAnchor, toggle }), [lockedAnchor, toggle]);
  return { lock, lockedAnchor, span, release };
}

/** A span of time on the agent's clock, in epoch milliseconds, inclusive. `to` is infinite while its subject runs. */
export interface Span {
  from: number;
  to: number;
}

const TURN = 'turn-';
const TASK = 'task-';

/** The span of a turn (`turn-<id>`) or task (`task-<position>`); null for an unknown anchor. */
export function spanOf(anchor: string, turns: readonly Turn[], tasks: readonly Task[]): Span | null {
  if (anchor.startsWith(TASK)) {
    const task = tasks.find(({ position }) => `${TASK}${position}` === anchor);
    return task === undefined ? null : { from: task.startedAt, to: task.endedAt ?? Number.POSITIVE_INFINITY };
  }
  const turn = turns.find(({ id }) => `${TURN}${id}` === anchor);
  if (turn === undefined) return null;
  if (turn.kind !== 'none') return { from: turn.startedAt, to: turn.endedAt ?? Number.POSITIVE_INFINITY };
  // Items outside of turns end at the last item.
  return { from: turn.startedAt, to: turn.items.reduce((latest, { at }) => Math.max(latest, at), turn.startedAt) };
}

/** Anchor of the turn or task card that contains an element. */
export function anchorAt(element: Element | null): string | null {
  return element?.closest('[id^="task-"], [data-turn]')?.id || null;
}
