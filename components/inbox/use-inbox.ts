'use client';

import type { MarkInbox } from '@interlude/protocol/commands';
import type { InboxList, InboxMarked } from '@interlude/protocol/inbox';
import { useState } from 'react';
import { postJson } from '@/components/live/fetch-json';
import { SOMETHING_NEW } from '@/components/live/mark-items';
import { useFleet, useFleetStores } from '@/components/live/use-fleet';
import { useLiveList } from '@/components/live/use-list';
import { itemsOf } from './inbox-items';

/** The loaded items, including those completed during this visit, and the request for further ones. */
export function useInbox() {
  const list = useFleet((fleet) => itemsOf(fleet).listed);
  const state = useLiveList<InboxList>({
    table: 'inbox',
    path: '/inbox',
    next: list?.next,
    take: (fleet, page, after) => itemsOf(fleet).take(page, after),
  });
  return { list, state };
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
