'use client';

import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { fetchJson } from './fetch-json';
import type { FleetStore } from './fleet-store';
import { takeOf, useFleetStores, useMorePages } from './use-fleet';

/** Rows of one answer. */
const PAGE = 100;
/** The server is asked once nothing was typed for so long. */
const TYPED_MS = 200;

interface FoundPage {
  /** Where the next page begins; null at the end. */
  next: string | null;
}

/**
 * What the server finds in a list of which only a part is loaded. The loaded rows are searched by the component that
 * shows them; what comes from here is put into the store, and is then among them.
 *
 * @param asked what is looked for, as the route's arguments; empty while nothing is
 */
export function useListSearch<Page extends FoundPage>(options: {
  path: '/sessions' | '/agents' | '/inbox';
  asked: string;
  take: (fleet: FleetStore, page: Page) => void;
}) {
  const { path, take } = options;
  const { fleet } = useFleetStores();
  const asked = useTyped(options.asked);
  const [later, setLater] = useState<{ of: string; next: string | null } | null>(null);
  const read = (after: string, signal?: AbortSignal) =>
    fetchJson<Page>(`${path}?${asked}&${new URLSearchParams({ after, limit: String(PAGE) })}`, signal);
  const first = useQuery({
    queryKey: ['search', path, asked],
    queryFn: ({ signal }) => takeOf(fleet, read('0', signal), (page) => take(fleet, page)),
    enabled: asked !== '',
    gcTime: 0,
    retry: false,
  });
  const isNow = asked === options.asked;
  const found = isNow ? first.data : undefined;
  const next = later?.of === asked ? later.next : found?.next;
  const more = useMorePages({
    of: `search ${path} ${asked}`,
    next,
    load: read,
    take: (fleet, page) => {
      take(fleet, page);
      setLater({ of: asked, next: page.next });
    },
  });
  return {
    /** Of what is asked for now; undefined until it has come. */
    found,
    isLoading: options.asked !== '' && (!isNow || first.isFetching || more.isLoading),
    hasMore: found !== undefined && next != null,
    error: asked === '' ? null : (first.error ?? more.error),
    load: () => (first.isError ? void first.refetch() : more.load()),
  };
}

/** The text once typing has paused; an emptied search counts at once. */
function useTyped(text: string): string {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return text === '' ? '' : typed;
}
