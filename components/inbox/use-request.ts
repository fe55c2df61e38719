'use client';

import type { InboxItem, InboxRequest } from '@interlude/protocol/inbox';
import type { RequestDetail } from '@interlude/protocol/read-models';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import type { ActionStore } from '@/components/live/actions';
import { fetchJson } from '@/components/live/fetch-json';
import { isAnswerPending, requestKey } from '@/components/requests/request-answer';

/** An item that asks something. */
export type RequestedItem = InboxItem & { sessionId: string; request: InboxRequest };

export function asksSomething(item: InboxItem): item is RequestedItem {
  return item.sessionId !== null && item.request !== null;
}

/** An answer that the agent refuses changes no item: the request itself has to be looked at. */
const LOOK_AGAIN_MS = 1_000;

/**
 * What an item asks, in full. It is read again when the item has changed, and while an answer is on its way.
 *
 * @param actions where its answers are given
 */
export function useRequest({ sessionId, request, updatedPosition }: RequestedItem, actions: ActionStore) {
  useSyncExternalStore(
    actions.subscribe,
    () => actions.version,
    () => 0,
  );
  return useQuery({
    queryKey: ['request', sessionId, request.id, request.openedPosition, updatedPosition],
    queryFn: ({ signal }) =>
      fetchJson<RequestDetail>(
        `/sessions/${encodeURIComponent(sessionId)}/requests/${encodeURIComponent(request.id)}`,
        signal,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data } }) => {
      const asked = data === undefined ? null : data.request;
      const isOpen = asked !== null && asked.outcome === null;
      return isOpen && isAnswerPending(asked, actions.get(requestKey(asked))) && LOOK_AGAIN_MS;
    },
  });
}
