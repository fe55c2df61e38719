'use client';

import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useCallback, useRef, useState } from 'react';

export interface MorePages {
  /** Loads the next page. */
  load: () => Promise<void>;
  isLoading: boolean;
  error: Error | null;
}

/**
 * The way to what a list has beyond its first page.
 *
 * Failure: says so, and the same page is asked for again by the next `load`.
 *
 * @param load reads the page that begins there; `0` is the beginning
 * @param add gives the list with that page
 */
export function useMorePages<List extends { next?: string | null }, Page = List>(
  key: QueryKey,
  load: (after: string) => Promise<Page>,
  add: (list: List, page: Page) => List,
): MorePages {
  const queryClient = useQueryClient();
  const [isLoading, setIsLoading] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const newest = useRef({ key, load, add });
  newest.current = { key, load, add };
  const busy = useRef(false);
  const loadNext = useCallback(async () => {
    const { key, load, add } = newest.current;
    const list = queryClient.getQueryData<List>(key);
    if (busy.current || list === undefined || list.next === null) return;
    busy.current = true;
    setIsLoading(true);
    setError(null);
    try {
      const page = await load(list.next ?? '0');
      queryClient.setQueryData<List>(key, (now) => now && add(now, page));
    } catch (failure) {
      setError(failure as Error);
    } finally {
      busy.current = false;
      setIsLoading(false);
    }
  }, [queryClient]);
  return { load: loadNext, isLoading, error };
}
