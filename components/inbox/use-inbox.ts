'use client';

import { useState } from 'react';
import { fetchJson, postJson } from '@/components/live/fetch-json';
import { ALL } from '@/components/live/fleet-store';
import { useFleet, useFleetStores, useMorePages, useReading } from '@/components/live/use-fleet';
import type { MarkInbox } from '@/lib/protocol/commands';
import type { InboxList, InboxMarked } from '@/lib/protocol/inbox';

const pageAfter = (after: string, signal?: AbortSignal) =>
  fetchJson<InboxList>(`/inbox?${new URLSearchParams({ after })}`, signal);

/** The items that are loaded, done ones of this visit among them, and the way to the others. */
export function useInbox() {
  const list = useFleet(({ inbox }) => inbox.list(ALL));
  useReading({
    table: 'inbox',
    kind: 'list',
    of: ALL,
    load: (signal) => pageAfter('0', signal),
    take: (fleet, page) => fleet.takeInbox(page),
  });
  const more = useMorePages({
    of: 'inbox',
    next: list?.next,
    load: (after) => pageAfter(after),
    take: (fleet, page, after) => fleet.takeInbox(page, after),
  });
  return { list, more };
}

/** Marks items. What could not be marked is said. */
export function useMarks() {
  const { fleet } = useFleetStores();
  const [failure, setFailure] = useState<string | null>(null);
  const mark = async (body: MarkInbox) => {
    setFailure(null);
    try {
      fleet.takeMarked(await postJson<InboxMarked>('/inbox/marks', body));
    } catch (error) {
      setFailure((error as Error).message);
    }
  };
  return { mark, failure };
}
