'use client';

import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { fetchJson } from './fetch-json';
import type { FleetStore } from './fleet-store';
import { applyUnlessReset, useFleetStores, useMorePages } from './use-fleet';

const PAGE = 100;
/** Delay between the last key and the request. */
const TYPED_MS = 200;

interface FoundPage {
  /** Cursor of the next page; null at the end. */
  next: string | null;
}

/**
 * Searches a partly loaded list on the server. Results go into the store; the component searches the loaded rows
 * itself.
 *
 * @param asked query string; empty for no search
 */
export function useListSearch<Page extends FoundPage>(options: {
  path: '/sessions' | '/agents' | '/inbox';
  asked: string;
  take: (fleet: FleetStore, page: Page) => void;
}) {
  const { path, take } = options;
  const { fleet } = useFleetStores();
  const asked = useDebounced(options.asked);
  const [further, setFurther] = useState<{ of: string; next: string | null } | null>(null);
  const read = (after: string, signal?: AbortSignal) =>
    fetchJson<Page>(`${path}?${asked}&${new URLSearchParams({ after, limit: String(PAGE) })}`, signal);
  const first = useQuery({
    queryKey: ['search', path, asked],
    queryFn: ({ signal }) => applyUnlessReset(fleet, read('0', signal), (page) => take(fleet, page)),
    enabled: asked !== '',
    gcTime: 0,
    retry: false,
  });
  const isNow = asked === options.asked;
  const found = isNow ? first.data : undefined;
  const next = further?.of === asked ? further.next : found?.next;
  const more = useMorePages({
    of: `search ${path} ${asked}`,
    next,
    load: read,
    take: (fleet, page) => {
      take(fleet, page);
      setFurther({ of: asked, next: page.next });
    },
  });
  return {
    /** First page for the current query; undefined until it arrives. */
    found,
    isLoading: options.asked !== '' && (!isNow || first.isFetching || more.isLoading),
    hasMore: found !== undefined && next != null,
    error: asked === '' ? null : (first.error ?? more.error),
    load: () => (first.isError ? void first.refetch() : more.load()),
  };
}

/** The text once typing pauses; an empty text applies at once. */
function useDebounced(text: string): string {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return text === '' ? '' : typed;
}
