'use client';

import { useSyncExternalStore } from 'react';
import type { LogStore } from './log-store';

const never = () => () => {};

/** What matters of a reading, after every change of it; null while there is none, and on the server. */
export function useLogStore<Selected>(store: LogStore | null, select: (store: LogStore) => Selected): Selected | null {
  return useSyncExternalStore(
    store?.subscribe ?? never,
    () => (store === null ? null : select(store)),
    () => null,
  );
}
