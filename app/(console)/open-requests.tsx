'use client';

import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import type { SessionSummary } from '@interlude/protocol/read-models';
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

/** The open requests of an agent, each below the title of its session. Keeps the outcome of the last one. */
export function AgentRequests({ agentId }: { agentId: string }) {
  const revision = useFleet(({ agents, sessions }) => {
    // Not all of its sessions may be loaded.
    const loaded = (sessions.list(agentId)?.rows ?? []).map(requestRevision).filter(Boolean);
    const { sessionStates, stateSince } = agents.get(agentId) ?? {};
    const waiting = sessionStates?.['needs-input'] ?? 0;
    return waiting + loaded.length === 0 ? '' : [waiting, stateSince, ...loaded].join(' ');
  });
  const { requests, openCount } = useOpenRequests({ agent: agentId }, revision, MAX_SHOWN);
  const box = useRef<HTMLUListElement>(null);
  // The button that opened them is gone.
  useEffect(() => box.current?.focus(), []);
  const focusNext = () => {
    const next = box.current?.querySelector<HTMLElement>('[data-action^="request:"]:not([data-gone], [hidden] *)');
    (next ?? box.current)?.focus();
  };
  return (
    <section id="requests" className="min-h-40">
      <h2 className="mb-2 flex gap-1.5 font-medium text-ink-2 text-xs">
        Requests <span className="tabular font-normal text-ink-3">{openCount}</span>
      </h2>
      <AnswerStoresProvider>
        <RequestBoardProvider onClosed={focusNext}>
          <ul ref={box} tabIndex={-1} aria-label="Requests" className="focus-quiet space-y-5">
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
    </section>
  );
}

function SessionName({ item: { sessionId } }: { item: RequestedItem }) {
  const title = useFleet(({ sessions }) => sessionTitle(sessions.get(sessionId) ?? { id: sessionId, title: null }));
  return <Phrase text={title} />;
}

/** Changes with the session's open requests; empty if it has none. */
export function requestRevision({ pendingRequestCount, observations: { request } }: SessionSummary): string {
  return pendingRequestCount === 0 ? '' : `${pendingRequestCount}@${request?.observedAt}`;
}

/**
 * The open requests of a session or agent with the one that was answered here last, oldest first.
 *
 * @param revision changes with the open requests, which are read again then; empty if there are none
 * @param max number of open requests returned
 */
export function useOpenRequests(owner: { session: string } | { agent: string }, revision: string, max: number) {
  const { fleet } = useFleetStores();
  const queries = useQueryClient();
  const path = `/inbox?${new URLSearchParams(owner)}&kind=permission&kind=question`;
  const { data, isError } = useQuery({
    queryKey: ['open-requests', path, revision],
    queryFn: async ({ signal }) => {
      const { items, counts } = await applyUnlessReset(fleet, fetchJson<InboxList>(path, signal), (page) =>
        itemsOf(fleet).putFound(page),
      );
      const [first] = items.filter(hasRequest);
      if (first !== undefined) await queries.prefetchQuery(requestQuery(first));
      return { ids: items.map((item) => item.id), all: counts.permission + counts.question };
    },
    enabled: revision !== '',
    // A reader who comes back needs the requests as they are now.
    gcTime: 0,
    placeholderData: keepPreviousData,
  });
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  if (data?.ids.some((one) => !ids.has(one))) setIds(new Set([...ids, ...data.ids]));
  useEffect(() => itemsOf(fleet).retain(ids), [fleet, ids]);
  // A string, so that only a change of these items renders.
  const shown = useFleet(({ inbox }) =>
    JSON.stringify(
      shownItems(
        [...ids].flatMap((id) => inbox.get(id) ?? []),
        max,
      ),
    ),
  );
  const requests = JSON.parse(shown) as RequestedItem[];
  const open = requests.filter(({ doneAt }) => doneAt === null).length;
  return {
    requests,
    openCount: open < max ? open : Math.max(open, data?.all ?? 0),
    isRead: revision === '' || isError || data !== undefined,
  };
}

/** The requests that are open the longest, and the one that was answered last, oldest first: so no card moves. */
function shownItems(items: readonly InboxItem[], max: number): RequestedItem[] {
  const requested = items.filter(hasRequest).sort((a, b) => a.since - b.since);
  const open = requested.filter(({ doneAt }) => doneAt === null).slice(0, max);
  const lastDoneAt = Math.max(...requested.map(({ doneAt }) => doneAt ?? 0));
  return requested.filter((item) => open.includes(item) || (item.doneAt !== null && item.doneAt === lastDoneAt));
}
