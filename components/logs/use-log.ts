'use client';

import { formatTopic } from '@interlude/protocol/sse';
import { useSearchParams } from 'next/navigation';
import {
  startTransition,
  useCallback,
  useEffect,
  useEffectEvent,
  useMemo,
  useOptimistic,
  useRef,
  useState,
} from 'react';
import { useLiveClient } from '@/components/live/live-provider';
import { useHydrated } from '@/components/ui/clock';
import {
  type FirstLog,
  filterOf,
  isFresh,
  type LogQuery,
  paramsFromQuery,
  queryFromParams,
  withQuery,
} from './log-query';
import { type LogAnchor, LogStore, useLogStore } from './log-store';

/** Matches no line: stands in for an expression that the server rejects with a message. */
const NOTHING = { source: '', required: null, test: () => false, hits: () => [] };

/**
 * An agent's log for a query, kept current. While another query loads, the previous store stays.
 *
 * @param query null for none
 * @param place where to open; called when the store opens
 * @param first the page that the server sent, if any
 */
export function useLog(agentId: string, query: LogQuery | null, place: () => LogAnchor, first: FirstLog | null = null) {
  const [sent] = useState(() =>
    first === null || typeof window === 'undefined' || !isFresh(first) ? null : LogStore.of(agentId, first),
  );
  const [store, setStore] = useState<LogStore | null>(sent);
  const isSent = useRef(sent !== null);
  const [resets, setResets] = useState(0);
  const live = useLiveClient();
  const anchor = useEffectEvent(place);
  const latestQuery = useEffectEvent(() => query);
  const key = query === null ? null : `${resets} ${query.isRegex} ${paramsFromQuery(query)}`;

  useEffect(() => {
    const current = latestQuery();
    if (key === null || current === null) {
      if (!isSent.current) setStore(null);
      return;
    }
    let isOver = false;
    const at = anchor();
    const isReady = isSent.current && at.kind === 'newest' && sent !== null && sameQuery(sent.query, current);
    isSent.current = false;
    if (isReady) return;
    openStore(agentId, current, at).then((next) => {
      if (!isOver) setStore(next);
    });
    return () => {
      isOver = true;
    };
  }, [agentId, key, sent]);

  const position = useLogStore(store, ({ position }) => position);
  useEffect(() => {
    if (store === null || position === null) return;
    const unsubscribe = live().subscribe(formatTopic({ kind: 'logs', agentId }), position, {
      frames: (frames) => store.applyFrames(frames),
      reset: () => setResets((count) => count + 1),
    });
    const stopWatching = store.subscribe(() => store.continueSearch());
    store.continueSearch();
    return () => {
      stopWatching();
      unsubscribe();
      store.close();
    };
  }, [live, agentId, store, position]);

  const error = useLogStore(store, ({ error }) => error);

  // The server's markup has no store.
  const isHydrated = useHydrated();
  const isCurrent = store !== null && query !== null && sameQuery(store.query, query);
  return { store: isHydrated ? store : null, error, isLoading: query !== null && !isCurrent };
}

export async function openStore(agentId: string, query: LogQuery, place: LogAnchor): Promise<LogStore> {
  let filter = filterOf(query, null);
  if (query.isRegex && query.text !== '') {
    const { compileLogRegex } = await import('@interlude/protocol/projections/log-regex');
    const outcome = compileLogRegex(query.text);
    filter = filterOf(query, outcome.kind === 'compiled' ? outcome.regex : NOTHING);
  }
  const store = new LogStore(agentId, query, filter);
  await store.open(place);
  return store;
}

function sameQuery(a: LogQuery, b: LogQuery): boolean {
  return a.isRegex === b.isRegex && paramsFromQuery(a).toString() === paramsFromQuery(b).toString();
}

/**
 * The log query, in the URL.
 *
 * @param prefix of its parameters beside those of another page; empty on the log's own page
 */
export function useLogQuery(prefix: string): [LogQuery, (query: LogQuery) => void] {
  const params = useSearchParams();
  const fromAddress = useMemo(() => queryFromParams(new URLSearchParams(params), prefix), [params, prefix]);
  // The router updates later, and a box must look ticked immediately.
  const [current, setCurrent] = useOptimistic(fromAddress);
  const change = useCallback(
    (query: LogQuery) =>
      startTransition(() => {
        setCurrent(query);
        const { pathname, search, hash } = location;
        const next = withQuery(new URLSearchParams(search), query, prefix);
        // On the log's own page, the hash names a line of the previous query.
        history.replaceState(null, '', `${pathname}${next.size > 0 ? `?${next}` : ''}${prefix && hash}`);
      }),
    [setCurrent, prefix],
  );
  return [current, change];
}
