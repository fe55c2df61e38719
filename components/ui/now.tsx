'use client';

import { createContext, type ReactNode, useContext, useState, useSyncExternalStore } from 'react';

/** The server's clock at the time of rendering, so that the first render in the browser says the same. */
const RenderedAt = createContext(0);
/** By how much the browser's clock is behind the server's. */
const Offset = createContext(0);

export function NowProvider({ renderedAt, children }: { renderedAt: number; children: ReactNode }) {
  // Too small by the time the page took to arrive: what is over by this clock is over by the server's, too.
  const [offset] = useState(() => (typeof window === 'undefined' ? 0 : renderedAt - Date.now()));
  return (
    <RenderedAt value={renderedAt}>
      <Offset value={offset}>{children}</Offset>
    </RenderedAt>
  );
}

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
let trueNow = 0;
let known: number | null = null;

/** All clocks are read anew. */
function tick(): void {
  trueNow = 0;
  for (const notify of listeners) notify();
}

/**
 * What is shown is known up to this time only, and all clocks stand there; null for up to now.
 * Nothing else may stop them, and nothing shown may go by another clock.
 */
export function freezeClocks(at: number | null): void {
  if (at === known) return;
  known = at;
  tick();
}

export function clocksFrozenAt(): number | null {
  return known;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // All clocks of a page tick together: one timer, one render.
  timer ??= setInterval(tick, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
    trueNow = 0;
  };
}

/**
 * The time up to which the page is known, to the second while it is shown: now, as a rule. `derive` says what of it
 * matters, so that only changes render.
 */
export function useNow<Derived>(derive: (now: number) => Derived): Derived {
  return useTime(shownNow, 0, derive);
}

/** The same on the server's clock, for what is judged by it: the reader's own may be off by hours. */
export function useServerNow<Derived>(derive: (now: number) => Derived): Derived {
  return useTime(shownNow, useContext(Offset), derive);
}

/** The time a page takes to arrive looks like a slow clock: a difference up to this is not taken for one. */
const ABOUT_RIGHT_MS = 5_000;

/** The same for clocks that run: by the reader's own where that is about right, so that those of two tabs agree. */
export function useClock<Derived>(derive: (now: number) => Derived): Derived {
  const offset = useContext(Offset);
  return useTime(shownNow, Math.abs(offset) < ABOUT_RIGHT_MS ? 0 : offset, derive);
}

/** Whether a time of the server's clock has passed, also while nothing is heard of the server. */
export function useHasPassed(at: number | null): boolean {
  return useTime(trueTime, useContext(Offset), (now) => at !== null && now >= at);
}

/** The true time, for what tells how old the page is. */
export function useTrueNow<Derived>(derive: (now: number) => Derived): Derived {
  return useTime(trueTime, 0, derive);
}

function shownNow(): number {
  return known ?? trueTime();
}

function trueTime(): number {
  trueNow ||= Date.now();
  return trueNow;
}

function useTime<Derived>(clock: () => number, offset: number, derive: (now: number) => Derived): Derived {
  const renderedAt = useContext(RenderedAt);
  return useSyncExternalStore(
    subscribe,
    () => derive(clock() + offset),
    () => derive(renderedAt),
  );
}

/** The time up to which what is shown is known, where that is not now; else null. */
export function useFrozenAt(): number | null {
  return useSyncExternalStore(subscribe, clocksFrozenAt, () => null);
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
