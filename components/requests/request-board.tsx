'use client';

import { createContext, type ReactNode, useContext, useState, useSyncExternalStore } from 'react';

type Watch = (id: string, element: Element) => () => void;

/** Which open requests the reader has before their eyes. Cards come and go as the transcript lays them out. */
class RequestBoard {
  readonly #listeners = new Set<() => void>();
  #visible: ReadonlySet<string> = new Set();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get visible(): ReadonlySet<string> {
    return this.#visible;
  }

  readonly watch: Watch = (id, element) => {
    // Any part of it counts: a pinned copy shrinks the transcript, and must not by that bring itself about again.
    const observer = new IntersectionObserver(([entry]) => this.#set(id, entry?.isIntersecting === true));
    observer.observe(element);
    return () => {
      observer.disconnect();
      this.#set(id, false);
    };
  };

  #set(id: string, isVisible: boolean): void {
    if (this.#visible.has(id) === isVisible) return;
    const visible = new Set(this.#visible);
    if (isVisible) visible.add(id);
    else visible.delete(id);
    this.#visible = visible;
    for (const listener of this.#listeners) listener();
  }
}

const BoardContext = createContext<RequestBoard | null>(null);

export function RequestBoardProvider({ children }: { children: ReactNode }) {
  const [board] = useState(() => new RequestBoard());
  return <BoardContext value={board}>{children}</BoardContext>;
}

const nothing: Watch = () => () => {};
const never = () => () => {};
const NONE: ReadonlySet<string> = new Set();

export function useWatchedRequests(): Watch {
  return useContext(BoardContext)?.watch ?? nothing;
}

export function useVisibleRequests(): ReadonlySet<string> {
  const board = useContext(BoardContext);
  return useSyncExternalStore(
    board?.subscribe ?? never,
    () => board?.visible ?? NONE,
    () => NONE,
  );
}
