'use client';

import type { Position } from '@interlude/protocol/position';
import { skipToken, useQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useSyncExternalStore } from 'react';
import type { FoldedSnapshot } from './folded-snapshot';
import { useLiveClient } from './live-provider';
import type { Store } from './store';

/** Selects from a store. @param select returns a stable value until its subject changes */
export function useSelected<Of extends Store, Selected>(store: Of, select: (store: Of) => Selected): Selected {
  const read = () => select(store);
  return useSyncExternalStore(store.subscribe, read, read);
}

/**
 * A store that follows a topic while its component is mounted, and is kept for ten minutes after that.
 *
 * @param key unique in the page
 * @param make creates the store if the page has none
 */
export function useFolded<Snapshot extends { position: Position }, Folded extends FoldedSnapshot<Snapshot>>(
  key: readonly string[],
  topic: string,
  make: () => Folded & FoldedSnapshot<Snapshot>,
) {
  const live = useLiveClient();
  const { data } = useQuery<unknown>({ queryKey: ['store', ...key], queryFn: skipToken, initialData: make });
  const store = data as Folded;
  const query = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => store.read(signal),
    initialData: () => store.position ?? undefined,
  });
  const isCurrent = useSelected(store, ({ position }) => position !== null);
  const readAgain = useEffectEvent(() => void query.refetch());
  useEffect(() => {
    if (!isCurrent) return;
    return live().subscribe(topic, store.position as Position, {
      frames: (frames) => store.applyFrames(frames),
      reset: () => {
        store.reset();
        readAgain();
      },
    });
  }, [live, store, topic, isCurrent]);
  return { store, query };
}
