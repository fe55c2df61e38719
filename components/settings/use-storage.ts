'use client';

import type { Storage } from '@interlude/protocol/storage';
import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';

/** What the database takes. @param initial null while it is still looked up */
export function useStorage(initial: Storage | null) {
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['access', 'storage'],
    queryFn: ({ signal }) => fetchJson<Storage>('/storage', signal),
    ...(initial === null ? {} : { initialData: initial }),
    refetchOnMount: initial === null,
    refetchOnWindowFocus: false,
  });
  return { storage: data ?? null, error, isLooking: isFetching, again: () => void refetch() };
}
