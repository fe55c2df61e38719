'use client';

import type { LogLine, Task, Turn, TurnAt } from '@interlude/protocol/read-models';
import { useCallback, useMemo, useRef, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
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

/** The turn that was running when a log line was written. */
export interface TurnAtLine {
  at: number;
  /** Null while loading and after a failure. */
  response: TurnAt | null;
  /** The reason loading failed, with advice. */
  error: string | null;
}

/**
 * Looks up the turn that was running when a log line was written, and shows it.
 *
 * Ordering: only the latest line's response counts.
 */
export function useTurnAtLine(sessionId: string, show: (turnId: string) => void) {
  const [turnAtLine, setTurnAtLine] = useState<TurnAtLine | null>(null);
  const controller = useRef<AbortController | null>(null);

  const lookUp = useCallback(
    async ({ occurredAt: at }: LogLine) => {
      controller.current?.abort();
      const current = new AbortController();
      controller.current = current;
      try {
        const path = `/sessions/${encodeURIComponent(sessionId)}/turn-at?at=${at}`;
        const response = await fetchJson<TurnAt>(path, current.signal);
        if (current.signal.aborted) return;
        setTurnAtLine({ at, response, error: null });
        if (response.turnId !== null) show(response.turnId);
      } catch (error) {
        if (current.signal.aborted) return;
        const reason =
          error instanceof TypeError ? 'The server can’t be reached. Try again.' : (error as Error).message;
        setTurnAtLine({ at, response: null, error: reason });
      }
    },
    [sessionId, show],
  );
  const clear = useCallback(() => {
    controller.current?.abort();
    setTurnAtLine(null);
  }, []);
  return { turnAtLine, lookUp, clear };
}
