'use client';

import { createContext, type ReactNode, useContext, useSyncExternalStore } from 'react';

/** The server's clock at the time of rendering, so that the first render in the browser says the same. */
const RenderedAt = createContext(0);

export function NowProvider({ renderedAt, children }: { renderedAt: number; children: ReactNode }) {
  return <RenderedAt value={renderedAt}>{children}</RenderedAt>;
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
  const renderedAt = useContext(RenderedAt);
  return useSyncExternalStore(
    subscribe,
    () => {
      now ||= Date.now();
      return derive(now);
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
