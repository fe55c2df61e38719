'use client';

import type { Task, Turn } from '@interlude/protocol/read-models';
import { useCallback, useMemo, useState } from 'react';
import type { TimeLock } from '@/components/ui/time-lock';

/**
 * Which turn or task the log is brought to, and its span. A span grows while what it belongs to runs, and is one and the
 * same object until it changes, so that the log is brought there once.
 */
export function useTimeLock(options: { turns: readonly Turn[]; tasks: readonly Task[]; onHold: () => void }) {
  const { turns, tasks, onHold } = options;
  const [held, setHeld] = useState<string | null>(null);
  const found = held === null ? null : spanOf(held, turns, tasks);
  const [from, to] = [found?.from ?? null, found?.to ?? null];
  const span = useMemo((): Span | null => (from === null || to === null ? null : { from, to }), [from, to]);

  const toggle = useCallback(
    (anchor: string) => {
      setHeld((before) => (before === anchor ? null : anchor));
      if (held !== anchor) onHold();
    },
    [held, onHold],
  );
  const release = useCallback(() => setHeld(null), []);
  const lock = useMemo((): TimeLock => ({ held, toggle }), [held, toggle]);
  return { lock, held, span, release };
}

/** A span of an agent's time, in epoch milliseconds, both ends included. What still runs has no end. */
export interface Span {
  from: number;
  to: number;
}

/** The anchors by which the page finds turns and tasks. */
const TURN = 'turn-';
const TASK = 'task-';

/** When the turn (`turn-<id>`) or the task (`task-<position>`) ran; null if nothing here has that anchor. */
export function spanOf(anchor: string, turns: readonly Turn[], tasks: readonly Task[]): Span | null {
  if (anchor.startsWith(TASK)) {
    const task = tasks.find(({ position }) => `${TASK}${position}` === anchor);
    return task === undefined ? null : { from: task.startedAt, to: task.endedAt ?? Number.POSITIVE_INFINITY };
  }
  const turn = turns.find(({ id }) => `${TURN}${id}` === anchor);
  if (turn === undefined) return null;
  if (turn.kind !== 'none') return { from: turn.startedAt, to: turn.endedAt ?? Number.POSITIVE_INFINITY };
  // What stands outside any turn ends with the last thing that was said there.
  return { from: turn.startedAt, to: turn.items.reduce((latest, { at }) => Math.max(latest, at), turn.startedAt) };
}
