'use client';

import type { OwnSignIns } from '@interlude/protocol/access';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { deleteJson, fetchJson } from '@/components/live/fetch-json';
import { useAct } from './use-act';

const KEY = ['access', 'own'];
const AGAIN_MS = 10_000;

/** Where the person is signed in, and the way to end the other ones. */
export function useOwnSignIns(initial: OwnSignIns) {
  const queries = useQueryClient();
  const { isSending, failure, act } = useAct();
  const { data } = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => fetchJson<OwnSignIns>('/me/sign-ins', signal),
    initialData: initial,
    refetchInterval: AGAIN_MS,
    refetchOnMount: 'always',
  });
  const endOthers = () => act(async () => queries.setQueryData(KEY, await deleteJson<OwnSignIns>('/me/sign-ins')));
  return { signIns: data.signIns, endOthers, isSending, failure };
}
