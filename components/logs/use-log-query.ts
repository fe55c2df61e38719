'use client';

import { useSearchParams } from 'next/navigation';
import { useCallback, useMemo, useState } from 'react';
import { EVERYTHING, type LogQuery, queryFromParams, withQuery } from './log-query';

/** What is asked of the log. On a page of its own its address says it, so that a link says the same. */
export function useLogQuery(inAddress: boolean): [LogQuery, (query: LogQuery) => void] {
  const params = useSearchParams();
  const [own, setOwn] = useState(EVERYTHING);
  const fromAddress = useMemo(() => queryFromParams(new URLSearchParams(params)), [params]);
  const change = useCallback((query: LogQuery) => {
    const { pathname, search } = location;
    const next = withQuery(new URLSearchParams(search), query);
    // the line that a link named belongs to what was shown before
    history.replaceState(null, '', next.size > 0 ? `${pathname}?${next}` : pathname);
  }, []);
  return inAddress ? [fromAddress, change] : [own, setOwn];
}
