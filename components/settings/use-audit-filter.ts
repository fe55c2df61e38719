'use client';

import { useCallback, useState } from 'react';
import { type AuditFilter, filterIn, paramsOf } from './audit-filter';

/** The filter, which is in the address, too: it can be sent to somebody. */
export function useAuditFilter(params: URLSearchParams): [AuditFilter, (filter: AuditFilter) => void] {
  const [filter, setFilter] = useState(() => filterIn(params));
  const change = useCallback((wanted: AuditFilter) => {
    setFilter(wanted);
    const query = paramsOf(wanted).toString();
    window.history.replaceState(null, '', query === '' ? location.pathname : `?${query}`);
  }, []);
  return [filter, change];
}
