'use client';

import type { CredentialList, CredentialSummary } from '@interlude/protocol/access';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { useServerNow } from '@/components/ui/clock';

const KEY = ['access', 'credentials'];
const AGAIN_MS = 5_000;

/** What lets somebody in, as of a moment ago. */
export function useCredentials(initial: CredentialList) {
  const queries = useQueryClient();
  const { data, error } = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => fetchJson<CredentialList>('/credentials', signal),
    initialData: initial,
    refetchInterval: AGAIN_MS,
    refetchOnMount: 'always',
  });
  const lookAgain = useCallback(() => queries.invalidateQueries({ queryKey: KEY }), [queries]);
  // once a minute is enough to tell what has run out
  const minute = useServerNow((now) => Math.floor(now / 60_000));
  const live = data.credentials.filter((one) => isLive(one, minute * 60_000));
  return { all: data.credentials, live, hasMore: data.hasMore, error, lookAgain };
}

export function isLive({ revokedAt, expiresAt, idleUntil }: CredentialSummary, now: number): boolean {
  return revokedAt === null && (expiresAt ?? Number.POSITIVE_INFINITY) > now && (idleUntil ?? now + 1) > now;
}
