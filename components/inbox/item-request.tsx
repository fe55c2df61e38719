'use client';

import type { InboxItem, InboxRequest } from '@interlude/protocol/inbox';
import type { RequestDetail } from '@interlude/protocol/read-models';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useState, useSyncExternalStore } from 'react';
import { ActionStore } from '@/components/live/actions';
import { fetchJson } from '@/components/live/fetch-json';
import { isAnswering, requestKey } from '@/components/requests/request-answer';

/** Actions taken on this page, by session. They outlive a folded row. */
class AnswerStores {
  readonly #stores = new Map<string, ActionStore>();

  of(sessionId: string): ActionStore {
    // The request's card shows failures.
    const store = this.#stores.get(sessionId) ?? new ActionStore(sessionId, () => {});
    this.#stores.set(sessionId, store);
    return store;
  }
}

const StoresContext = createContext<AnswerStores | null>(null);

export function AnswerStoresProvider({ children }: { children: ReactNode }) {
  const [stores] = useState(() => new AnswerStores());
  return <StoresContext value={stores}>{children}</StoresContext>;
}

export function useAnswerStore(sessionId: string): ActionStore {
  const stores = useContext(StoresContext);
  if (stores === null) throw new Error('AnswerStoresProvider is missing');
  return stores.of(sessionId);
}

const NO_REQUEST = { id: '', digest: null, openedPosition: '' };

/** The answer to an item's request that was given on this page; null if there is none. */
export function useAnswer({ sessionId, request }: Pick<InboxItem, 'sessionId' | 'request'>) {
  const actions = useAnswerStore(sessionId ?? '');
  const { id, digest, openedPosition } = request ?? NO_REQUEST;
  const key = requestKey({ id, position: openedPosition, digest });
  const state = useSyncExternalStore(
    actions.subscribe,
    () => actions.get(key),
    () => null,
  );
  return { actions, key, state, isSent: state?.kind === 'sending' || state?.kind === 'accepted' };
}

/** An item with a request. */
export type RequestedItem = InboxItem & { sessionId: string; request: InboxRequest };

export function hasRequest(item: InboxItem): item is RequestedItem {
  return item.sessionId !== null && item.request !== null;
}

const OUTCOME: Record<string, string> = { allow: 'Allowed', deny: 'Denied' };

/** The outcome of an item that is done: the answer of this page, else only that it is done. */
export function DoneWord({ item }: { item: RequestedItem }) {
  const { actions, key } = useAnswer(item);
  const { behavior } = (actions.sent(key) ?? {}) as { behavior?: string };
  return OUTCOME[behavior ?? ''] ?? 'Done';
}

/** Poll interval while an answer is on its way. A refused answer changes no item, only the request. */
const POLL_MS = 1_000;

/** Reads the full request of an item. */
export function requestQuery({ sessionId, request, updatedPosition }: RequestedItem) {
  const path = `/sessions/${encodeURIComponent(sessionId)}/requests/${encodeURIComponent(request.id)}`;
  return {
    queryKey: ['request', sessionId, request.id, request.openedPosition, updatedPosition],
    queryFn: ({ signal }: { signal: AbortSignal }) => fetchJson<RequestDetail>(path, signal),
  };
}

/**
 * The full request of an item. Read again when the item changes and while an answer is on its way.
 *
 * @param actions store of the answers
 */
export function useRequest(item: RequestedItem, actions: ActionStore) {
  useSyncExternalStore(
    actions.subscribe,
    () => actions.version,
    () => 0,
  );
  return useQuery({
    ...requestQuery(item),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data } }) => {
      const request = data === undefined ? null : data.request;
      const isOpen = request !== null && request.outcome === null;
      return isOpen && isAnswering(request, actions.get(requestKey(request))) && POLL_MS;
    },
  });
}
