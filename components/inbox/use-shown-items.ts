'use client';

import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { isSnoozed } from '@interlude/protocol/inbox-rules';
import { searchWords } from '@interlude/protocol/list-search';
import { INBOX_KINDS, type InboxKind } from '@interlude/protocol/vocabulary';
import { useSearchParams } from 'next/navigation';
import { type RefObject, useDeferredValue, useEffect, useMemo, useState } from 'react';
import { useFleet, useFleetStores } from '@/components/live/use-fleet';
import { useListSearch } from '@/components/live/use-list-search';
import { useServerNow } from '@/components/ui/now';
import { useHeldOrder } from '@/components/ui/use-held-order';
import { itemsOf } from './inbox-items';
import { inboxOrder, isFound } from './inbox-order';
import { useInbox, useItemCounts } from './use-inbox';

const NOTHING: readonly InboxItem[] = [];

interface Found {
  asked: string;
  ids: ReadonlySet<string>;
}
const NONE: Found = { asked: '', ids: new Set() };

/** The items of the inbox as its page shows them: of the kinds in the address, found by what is typed, held in place. */
export function useShownItems(box: RefObject<HTMLElement | null>) {
  const { fleet } = useFleetStores();
  const { list, more } = useInbox();
  useItemCounts(list?.countsAreOld ?? false);
  const params = useSearchParams();
  const wanted = INBOX_KINDS.filter((kind) => params.getAll('kind').includes(kind));
  const [text, setText] = useState('');
  const isSearched = text.trim() !== '';
  // Of a kind, where some of it may not be loaded. What is typed is looked for by the server in any case, which knows
  // every session that an item is about.
  const isPart = wanted.length > 0 && list?.next != null;
  const asked = isSearched || isPart ? paramsOf(wanted, text.trim()).toString() : '';
  const [foundThere, setFoundThere] = useState<Found>(NONE);
  const search = useListSearch<InboxList>({
    path: '/inbox',
    asked,
    take: (fleet, page) => {
      itemsOf(fleet).takeFound(page);
      const ids = page.items.map(({ id }) => id);
      setFoundThere((before) => ({ asked, ids: new Set(before.asked === asked ? [...before.ids, ...ids] : ids) }));
    },
  });
  const rows = list?.rows ?? NOTHING;
  const open = useMemo(() => rows.filter(({ doneAt }) => doneAt === null), [rows]);
  const snoozed = useServerNow((now) =>
    JSON.stringify(open.filter((item) => isSnoozed(item, now)).map(({ id }) => id)),
  );
  const shown = wanted.join(' ');
  const sought = useDeferredValue(text);
  const sessions = useFleet(({ sessions }) => sessions);
  const order = useMemo(() => {
    const words = searchWords(sought);
    const found = open.filter(
      (item) =>
        (foundThere.asked === asked && foundThere.ids.has(item.id)) ||
        isFound(words, item, sessions.get(item.sessionId ?? '')),
    );
    const kinds = INBOX_KINDS.filter((kind) => shown.split(' ').includes(kind));
    return inboxOrder(found, { kinds, snoozed: new Set<string>(JSON.parse(snoozed)) });
  }, [open, snoozed, shown, sought, sessions, foundThere, asked]);
  // What is done stays where it is until the reader has left: the next row must not come under their hand.
  const byId = useMemo(() => new Map(rows.map((item) => [item.id, item])), [rows]);
  const held = useHeldOrder(box, order, `${shown} ${sought}`, (id) => byId.has(id));
  const shownIds = useMemo(() => new Set(held.order.flatMap(({ ids }) => ids)), [held.order]);
  useEffect(() => itemsOf(fleet).hold(shownIds), [fleet, shownIds]);
  const groups = held.order
    .map(({ name, ids }) => ({ name, items: ids.flatMap((id) => byId.get(id) ?? []) }))
    .filter(({ items }) => items.length > 0);
  return { list, more, open, byId, groups, held, wanted, search, text, setText, isSearched, isPart };
}

function paramsOf(kinds: readonly InboxKind[], text: string): URLSearchParams {
  const params = new URLSearchParams();
  for (const kind of kinds) params.append('kind', kind);
  if (text !== '') params.set('q', text);
  return params;
}
