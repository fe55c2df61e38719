'use client';

import { useSearchParams } from 'next/navigation';
import { startTransition, useCallback, useMemo, useOptimistic, useState } from 'react';
import { EVERYTHING, type LogQuery, queryFromParams, withQuery } from './log-query';

/** What is asked of the log. On a page of its own its address says it, so that a link says the same. */
export function useLogQuery(inAddress: boolean): [LogQuery, (query: LogQuery) => void] {
  const params = useSearchParams();
  const [own, setOwn] = useState(EVERYTHING);
  const fromAddress = useMemo(() => queryFromParams(new URLSearchParams(params)), [params]);
  // The router takes up an address when it gets to it; a box that was ticked is ticked at once.
  const [asked, ask] = useOptimistic(fromAddress);
  const change = useCallback(
    (query: LogQuery) =>
      startTransition(() => {
        ask(query);
        const { pathname, search } = location;
        const next = withQuery(new URLSearchParams(search), query);
        // the line that a link named belongs to what was shown before
        history.replaceState(null, '', next.size > 0 ? `${pathname}?${next}` : pathname);
      }),
    [ask],
  );
  return inAddress ? [asked, change] : [own, setOwn];
}
