'use client';

import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { fetchJson } from './fetch-json';
import type { FleetStore } from './fleet-store';
import { takeOf, useFleetStores } from './use-fleet';

/** Rows of one answer. */
const PAGE = 100;
/** The server is asked once nothing was typed for so long. */
const TYPED_MS = 200;

interface FoundPage {
  /** Where the next page begins; null at the end. */
  next: string | null;
}

/**
 * What the server finds in a list of which only a part is loaded. The rows that are loaded are searched by who shows them;
 * what comes from here is put into the store, and is then among them.
 *
 * @param asked what is looked for, as the route's arguments; empty while nothing is
 */
export function useListSearch<Page extends FoundPage>(options: {
  path: '/sessions' | '/agents';
  asked: string;
  take: (fleet: FleetStore, page: Page) => void;
}) {
  const { path, take } = options;
  const { fleet } = useFleetStores();
  const asked = useTyped(options.asked);
  const search = useInfiniteQuery({
    queryKey: ['search', path, asked],
    initialPageParam: '0',
    queryFn: ({ pageParam: after, signal }) => {
      const page = new URLSearchParams({ after, limit: String(PAGE) });
      return takeOf(fleet, fetchJson<Page>(`${path}?${asked}&${page}`, signal), (found) => take(fleet, found));
    },
    getNextPageParam: ({ next }) => next,
    enabled: asked !== '',
    staleTime: 0,
    gcTime: 0,
    retry: false,
  });
  return {
    /** Of what is asked for now; undefined until it has come. */
    first: asked === options.asked ? search.data?.pages[0] : undefined,
    isSearching: options.asked !== '' && (asked !== options.asked || search.isFetching),
    hasMore: search.hasNextPage,
    error: asked === '' ? null : search.error,
    load: () => void (search.isError && !search.isFetchNextPageError ? search.refetch() : search.fetchNextPage()),
  };
}

/** Nothing is nothing at once. */
function useTyped(text: string): string {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return text === '' ? '' : typed;
}
