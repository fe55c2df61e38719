'use client';

import { createContext, type ReactNode, useContext, useState, useSyncExternalStore } from 'react';

/** The server's clock at the time of rendering, so that the first render in the browser says the same. */
const RenderedAt = createContext(0);
/** By how much the browser's clock is behind the server's. */
const Offset = createContext(0);

export function NowProvider({ renderedAt, children }: { renderedAt: number; children: ReactNode }) {
  // Less by what the page took to get here: what is over by this clock is over by the server's.
  const [offset] = useState(() => (typeof window === 'undefined' ? 0 : renderedAt - Date.now()));
  return (
    <RenderedAt value={renderedAt}>
      <Offset value={offset}>{children}</Offset>
    </RenderedAt>
  );
}

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
let now = 0;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // All clocks of a page tick together: one timer, one render.
  timer ??= setInterval(() => {
    now = Date.now();
    for (const notify of listeners) notify();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
    now = 0;
  };
}

/** The time, to the second while it is shown. `derive` says what of it matters, so that only changes render. */
export function useNow<Derived>(derive: (now: number) => Derived): Derived {
  return useTime(0, derive);
}

/** The same on the server's clock, for what is judged by it: the reader's own may be off by hours. */
export function useServerNow<Derived>(derive: (now: number) => Derived): Derived {
  return useTime(useContext(Offset), derive);
}

/** Whether a time of the server's clock has passed. */
export function useHasPassed(at: number | null): boolean {
  return useServerNow((now) => at !== null && now >= at);
}

function useTime<Derived>(offset: number, derive: (now: number) => Derived): Derived {
  const renderedAt = useContext(RenderedAt);
  return useSyncExternalStore(
    subscribe,
    () => {
      now ||= Date.now();
      return derive(now + offset);
    },
    () => derive(renderedAt),
  );
}

const never = () => () => {};

/** Whether this runs in a browser that has taken over the server's markup: time zones and platforms are known then. */
export function useHydrated(): boolean {
  return useSyncExternalStore(
    never,
    () => true,
    () => false,
  );
}
