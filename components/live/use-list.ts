'use client';

import { type UseQueryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { fetchJson } from './fetch-json';
import { ALL, type FleetStore, type TableName } from './fleet-store';
import { applyUnlessReset, fleetQueryKey, useFleetStores } from './use-fleet';

/** Number of rows in a page. */
export const PAGE = 100;
/** Maximum number of rows in a response. */
const MAX_PAGE = 1_000;
/** Delay between the last key and the request. */
const TYPED_MS = 200;

/** State of the request for rows that are not loaded yet. A background refresh doesn’t count as loading. */
export interface ListState {
  hasMore: boolean;
  isLoading: boolean;
  error: Error | null;
  /** Reads the next page, or the first one again if it failed. */
  load: () => void;
}

interface ListOptions<List>
  extends Pick<
    UseQueryOptions<List>,
    'enabled' | 'gcTime' | 'initialData' | 'placeholderData' | 'refetchInterval' | 'refetchOnMount' | 'retry'
  > {
  key: readonly unknown[];
  /** @param after cursor; null for the first page */
  read: (after: string | null, signal?: AbortSignal) => Promise<List>;
  /** Cursor of the next page; null at the end. Omit it for a list of one page. */
  next?: (list: List | undefined) => string | null | undefined;
  /** Adds a page. Omit it for rows that `read` stores elsewhere. */
  join?: (list: List, page: List) => List;
}

/**
 * Reads a list page by page. `List` and `ListEnd` show it.
 *
 * Rows of live lists (sessions, agents, inbox) are in the fleet store, which follows the stream: see `useLiveList`. Rows
 * of other lists (members, credentials, audit log) are the query's data.
 *
 * Failure: sets `error`. The rows stay, and `load` repeats the request.
 */
export function useList<List>({ key, read, next, join, ...options }: ListOptions<List>) {
  const queries = useQueryClient();
  const first = useQuery({ queryKey: key, queryFn: ({ signal }) => read(null, signal), ...options });
  const cursor = next?.(first.data) ?? null;
  const update = (change: (list: List) => List) =>
    queries.setQueryData<List>(key, (list) => (list === undefined ? list : change(list)));
  const more = useMorePage(key, cursor, async (after) => {
    const page = await read(after);
    if (join !== undefined) update((list) => join(list, page));
  });
  return {
    /** The request of the first page. */
    first,
    list: first.data,
    hasMore: cursor !== null,
    isLoading: first.isLoading || first.isPlaceholderData || more.isLoading,
    error: first.error ?? more.error,
    load: () => (first.isError ? void first.refetch() : more.load()),
    update,
  };
}

/** Loads the page after a cursor on demand. */
export function useMorePage(
  key: readonly unknown[],
  after: string | null,
  read: (after: string) => Promise<void>,
): ListState {
  const page = useQuery({
    queryKey: ['more', ...key, after],
    queryFn: async () => {
      if (after !== null) await read(after);
      return null;
    },
    enabled: false,
    retry: false,
  });
  return {
    hasMore: after !== null,
    isLoading: page.isFetching,
    error: page.error,
    load: () => void page.refetch({ cancelRefetch: false }),
  };
}

/** Reads a list into the fleet store, which keeps it current. After a gap, it is read again. */
export function useLiveList<Page>(options: {
  table: TableName;
  path: '/sessions' | '/agents' | '/inbox';
  /** Query string of every page. */
  query?: string;
  next: string | null | undefined;
  /** Number of rows in a page; by default the server's own limit. */
  limit?: number;
  /** Number of rows that are loaded already: after a gap, the first page has as many rows. */
  listed?: number | undefined;
  put: (fleet: FleetStore, page: Page, after?: string) => void;
}) {
  const { table, path, query, next, limit, listed = 0, put } = options;
  const { fleet } = useFleetStores();
  return useList<number>({
    key: fleetQueryKey('list', table, ALL),
    read: async (after, signal) => {
      if (after === null) fleet.retain(table, ALL);
      const rows = after === null && limit !== undefined ? Math.min(MAX_PAGE, Math.max(limit, listed)) : limit;
      const page = fetchJson<Page>(pagePath(path, after, rows, query), signal);
      await applyUnlessReset(fleet, page, (page) => put(fleet, page, after ?? undefined));
      return fleet.resets;
    },
    initialData: () => (fleet[table].isRead(ALL) ? fleet.resets : undefined),
    next: () => next,
  });
}

/**
 * Searches a partly loaded list on the server. Results go into the store; the component searches the loaded rows
 * itself.
 *
 * @param query query string; empty for no search
 */
export function useListSearch<Page extends { next: string | null }>(options: {
  path: '/sessions' | '/agents' | '/inbox';
  query: string;
  put: (fleet: FleetStore, page: Page) => void;
  join?: (found: Page, page: Page) => Page;
}) {
  const { path, put, join = (found, { next }) => ({ ...found, next }) } = options;
  const { fleet } = useFleetStores();
  const query = useDebounced(options.query);
  const isNow = query === options.query;
  const search = useList<Page>({
    key: ['search', path, query],
    read: (after, signal) =>
      applyUnlessReset(fleet, fetchJson<Page>(pagePath(path, after, PAGE, query), signal), (page) => put(fleet, page)),
    next: (found) => found?.next,
    join,
    enabled: query !== '',
    gcTime: 0,
    retry: false,
  });
  const found = isNow ? search.list : undefined;
  return {
    /** Results of the current query; undefined until they arrive. */
    found,
    isLoading: options.query !== '' && (!isNow || search.isLoading),
    hasMore: found !== undefined && search.hasMore,
    error: query === '' ? null : search.error,
    load: search.load,
  };
}

function pagePath(path: string, after: string | null, limit?: number, query = ''): string {
  const params = new URLSearchParams(query);
  params.set('after', after ?? '0');
  if (limit !== undefined) params.set('limit', String(limit));
  return `${path}?${params}`;
}

/** The text once typing pauses; an empty text applies immediately. */
function useDebounced(text: string): string {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return text === '' ? '' : typed;
}
