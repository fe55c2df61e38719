'use client';

import type { Task, Turn } from '@interlude/protocol/read-models';
import { useCallback, useMemo, useState } from 'react';
import type { TimeLock } from '@/components/ui/time-lock';
import { type Span, spanOf } from './span-of';

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
