'use client';

import type { AuditPage } from '@interlude/protocol/access';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';

const PAGE = 50;

/** The entries that match, the newest first, page by page. */
export function useAudit(query: string, first: { query: string; page: AuditPage }) {
  const { data, error, fetchNextPage, hasNextPage, isFetching, isPlaceholderData, refetch } = useInfiniteQuery({
    queryKey: ['access', 'audit', query],
    queryFn: ({ pageParam, signal }) => {
      const params = new URLSearchParams(query);
      params.set('limit', String(PAGE));
      if (pageParam !== null) params.set('before', String(pageParam));
      return fetchJson<AuditPage>(`/audit?${params}`, signal);
    },
    initialPageParam: null as number | null,
    getNextPageParam: ({ next }) => next,
    ...(query === first.query ? { initialData: { pages: [first.page], pageParams: [null] } } : {}),
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  return {
    entries: data?.pages.flatMap(({ entries }) => entries) ?? [],
    /** The older entries that were removed, if any. */
    removed: data?.pages.at(-1)?.removed ?? null,
    hasMore: hasNextPage,
    more: () => void fetchNextPage(),
    again: () => void refetch(),
    isLoading: isFetching,
    isOld: isPlaceholderData,
    error,
  };
}
