'use client';

import type { FleetCounts } from '@interlude/protocol/inbox';
import { useQuery } from '@tanstack/react-query';
import { useServerNow } from '@/components/ui/clock';
import { fetchJson } from './fetch-json';
import { applyUnlessReset, useFleet, useFleetStores, useInitialData } from './use-fleet';

/** Minimum interval between two requests for counts. */
const COUNT_AGAIN_MS = 1_000;

/** The server's counts: the only source of numbers about the whole fleet. Undefined until they are loaded. */
export function useCounts(): FleetCounts | undefined {
  return useFleet(({ counts }) => counts);
}

/** Keeps the counts current. Once per page. @param initial as the server read them for the page, if it did */
export function CurrentCounts({ initial }: { initial?: FleetCounts }): null {
  const { fleet } = useFleetStores();
  useInitialData((fleet) => initial && fleet.putCounts(initial));
  const hasChanged = useFleet(({ countsAreOld }) => countsAreOld);
  const changesAt = useCounts()?.changesAt ?? null;
  const isDue = useServerNow((now) => changesAt !== null && changesAt <= now);
  useQuery({
    queryKey: ['counts'],
    queryFn: async ({ signal }) => {
      const request = fetchJson<FleetCounts>('/counts', signal);
      return (await applyUnlessReset(fleet, request, (counts) => fleet.putCounts(counts))).position;
    },
    enabled: hasChanged || isDue,
    staleTime: COUNT_AGAIN_MS,
    refetchInterval: COUNT_AGAIN_MS,
  });
  return null;
}
