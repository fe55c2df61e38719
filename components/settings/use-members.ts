'use client';

import type { ChangeMemberRequest, MemberList, MemberSummary } from '@interlude/protocol/access';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { fetchJson, putJson } from '@/components/live/fetch-json';

const KEY = ['access', 'members'];
const AGAIN_MS = 10_000;

/** Who has signed in with the provider, and the way to change what they may. */
export function useMembers(initial: MemberList) {
  const queries = useQueryClient();
  const { data, error } = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => fetchJson<MemberList>('/members', signal),
    initialData: initial,
    refetchInterval: AGAIN_MS,
    refetchOnMount: 'always',
  });
  const change = async (id: string, wanted: ChangeMemberRequest) => {
    const { member } = await putJson<{ member: MemberSummary }>(`/members/${encodeURIComponent(id)}`, wanted);
    queries.setQueryData<MemberList>(KEY, (list = initial) => ({
      ...list,
      members: list.members.map((one) => (one.id === id ? member : one)),
    }));
  };
  return { ...data, error, change };
}
