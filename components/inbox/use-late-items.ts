'use client';

import type { InboxList } from '@interlude/protocol/inbox';
import { comparePositions } from '@interlude/protocol/position';
import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';
import { ALL } from '@/components/live/fleet-store';
import { applyUnlessReset, useFleet, useFleetStores } from '@/components/live/use-fleet';
import { readStored } from '@/components/ui/browser-storage';
import { itemsOf } from './inbox-items';
import { LOOK_KEY, lookOf } from './notice-look';

/** Of a thousand items each. */
const MOST_PAGES = 10;

/**
 * Loads what came up since the last look and is not among the items that are loaded, of which there may be many: the
 * oldest of each kind come first. Whatever comes later is told by the stream.
 *
 * @returns whether all of it is here. What can't be loaded is not waited for
 */
export function useLateItems(isWanted: boolean): boolean {
  const { fleet } = useFleetStores();
  const resets = useFleet((fleet) => fleet.resets);
  const next = useFleet(({ inbox }) => (inbox.isRead(ALL) ? inbox.list(ALL)?.next : undefined));
  const late = useQuery({
    queryKey: ['late-items', resets],
    queryFn: async ({ signal }) => {
      const since = lookOf(readStored(LOOK_KEY))?.upTo;
      let after = since === undefined ? null : (next ?? null);
      for (let page = 0; page < MOST_PAGES && after !== null; page++) {
        const asked = fetchJson<InboxList>(`/inbox?${new URLSearchParams({ after })}`, signal);
        const list: InboxList = await applyUnlessReset(fleet, asked, (list) => {
          const items = list.items.filter((item) => comparePositions(item.updatedPosition, since ?? '') > 0);
          itemsOf(fleet).takeFound({ ...list, items });
        });
        after = list.next;
      }
      return resets;
    },
    enabled: isWanted && next != null,
    retry: 1,
  });
  return next === null || !late.isPending;
}
