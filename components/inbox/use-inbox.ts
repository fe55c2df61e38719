'use client';

import type { MarkInbox } from '@interlude/protocol/commands';
import type { InboxList, InboxMarked } from '@interlude/protocol/inbox';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { fetchJson, postJson } from '@/components/live/fetch-json';
import { ALL } from '@/components/live/fleet-store';
import { SOMETHING_NEW } from '@/components/live/mark-items';
import { useFleet, useFleetQuery, useFleetStores, useMorePages } from '@/components/live/use-fleet';
import { itemsOf } from './inbox-items';

/** They are asked for again at most this often. */
const COUNT_AGAIN_MS = 5_000;

const pageAfter = (after: string, signal?: AbortSignal) =>
  fetchJson<InboxList>(`/inbox?${new URLSearchParams({ after })}`, signal);

/** The items that are loaded, done ones of this visit among them, and the way to the others. */
export function useInbox() {
  const list = useFleet((fleet) => itemsOf(fleet).listed);
  useFleetQuery({
    table: 'inbox',
    kind: 'list',
    of: ALL,
    load: (signal) => pageAfter('0', signal),
    take: (fleet, page, after?: string) => itemsOf(fleet).take(page, after),
  });
  const more = useMorePages({
    of: 'inbox',
    next: list?.next,
    load: (after) => pageAfter(after),
    take: (fleet, page, after?: string) => itemsOf(fleet).take(page, after),
  });
  return { list, more };
}

/** Keeps the counts of each kind true where not all of it is loaded: what is not, only the server knows. */
export function useItemCounts(areOld: boolean): void {
  const { fleet } = useFleetStores();
  useQuery({
    queryKey: ['item-counts'],
    queryFn: async ({ signal }) => {
      const path = `/inbox?${new URLSearchParams({ after: '0', limit: '1' })}`;
      const list = await fetchJson<InboxList>(path, signal);
      itemsOf(fleet).takeCounts(list);
      return list.position;
    },
    enabled: areOld,
    refetchInterval: COUNT_AGAIN_MS,
  });
}

/** Marks items as they are shown. What could not be marked, or has changed since, is said. */
export function useMarks() {
  const { fleet } = useFleetStores();
  const [failure, setFailure] = useState<string | null>(null);
  const mark = async (body: MarkInbox) => {
    setFailure(null);
    try {
      const marked = await postJson<InboxMarked>('/inbox/marks', body);
      itemsOf(fleet).takeMarked(marked);
      const [left, of] = [marked.changed.length, body.items?.length ?? 0];
      if (left > 0) setFailure(of === 1 ? SOMETHING_NEW : `${left} of ${of}, where ${SOMETHING_NEW}`);
    } catch (error) {
      setFailure((error as Error).message);
    }
  };
  return { mark, failure };
}
