'use client';

import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { itemsOf } from '@/components/inbox/inbox-items';
import { AnswerStoresProvider, hasRequest, type RequestedItem, requestQuery } from '@/components/inbox/item-request';
import { fetchJson } from '@/components/live/fetch-json';
import { applyUnlessReset, useFleet, useFleetStores } from '@/components/live/use-fleet';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { sessionTitle } from '@/components/sessions/session-labels';
import { Link } from '@/components/ui/link';
import { Phrase } from '@/components/ui/name';
import { RequestHere } from './inbox/request-here';

/** Requests of an agent shown at once. */
const MAX_SHOWN = 5;

/** The open requests of an agent, each below the title of its session. */
export function AgentRequests({ agentId, count }: { agentId: string; count: number }) {
  const { requests } = useOpenRequests({ agent: agentId }, count, MAX_SHOWN);
  const box = useRef<HTMLUListElement>(null);
  const focusNext = () =>
    box.current?.querySelector<HTMLElement>('[data-action^="request:"]:not([data-gone], [hidden] *)')?.focus();
  return (
    <AnswerStoresProvider>
      <RequestBoardProvider onClosed={focusNext}>
        <ul ref={box} className="space-y-5">
          {requests.map((item) => (
            <li key={item.id}>
              <Link
                href={`/sessions/${encodeURIComponent(item.sessionId)}`}
                prefetch={false}
                className="font-medium text-row hover:underline"
              >
                <SessionName item={item} />
              </Link>
              <RequestHere item={item} />
            </li>
          ))}
        </ul>
      </RequestBoardProvider>
    </AnswerStoresProvider>
  );
}

function SessionName({ item: { sessionId } }: { item: RequestedItem }) {
  const title = useFleet(({ sessions }) => sessionTitle(sessions.get(sessionId) ?? { id: sessionId, title: null }));
  return <Phrase text={title} />;
}

/**
 * The open requests of a session or agent, longest first, after the one that was answered here last.
 *
 * @param count number of open requests; read again when it changes
 * @param max number of open requests returned
 */
export function useOpenRequests(owner: { session: string } | { agent: string }, count: number, max: number) {
  const { fleet } = useFleetStores();
  const queries = useQueryClient();
  const path = `/inbox?${new URLSearchParams(owner)}&kind=permission&kind=question`;
  const { data, isError } = useQuery({
    queryKey: ['open-requests', path, count],
    queryFn: async ({ signal }) => {
      const { items } = await applyUnlessReset(fleet, fetchJson<InboxList>(path, signal), (page) =>
        itemsOf(fleet).putFound(page),
      );
      const [first] = items.filter(hasRequest);
      if (first !== undefined) await queries.prefetchQuery(requestQuery(first));
      return items.map((item) => item.id);
    },
    enabled: count > 0,
    placeholderData: keepPreviousData,
  });
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  if (data?.some((one) => !ids.has(one))) setIds(new Set([...ids, ...data]));
  useEffect(() => itemsOf(fleet).retain(ids), [fleet, ids]);
  // A string, so that only a change of these items renders.
  const shown = useFleet(({ inbox }) =>
    JSON.stringify(
      shownItems(
        [...ids].flatMap((one) => inbox.get(one) ?? []),
        max,
      ),
    ),
  );
  return {
    requests: JSON.parse(shown) as RequestedItem[],
    isRead: count === 0 || isError || data !== undefined,
  };
}

/** The request that was answered last, and those that are open the longest. */
function shownItems(items: readonly InboxItem[], max: number): RequestedItem[] {
  const requested = items.filter(hasRequest);
  const open = requested.filter(({ doneAt }) => doneAt === null).sort((a, b) => a.since - b.since);
  const done = requested.filter(({ doneAt }) => doneAt !== null).sort((a, b) => (b.doneAt ?? 0) - (a.doneAt ?? 0));
  return [...done.slice(0, 1), ...open.slice(0, max)];
}
