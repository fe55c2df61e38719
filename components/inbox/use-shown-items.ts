'use client';

import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { isSnoozed } from '@interlude/protocol/inbox-rules';
import { inboxText, searchWords, sessionText } from '@interlude/protocol/list-search';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { INBOX_KINDS, type InboxKind } from '@interlude/protocol/vocabulary';
import { useSearchParams } from 'next/navigation';
import { type RefObject, useDeferredValue, useEffect, useMemo, useState } from 'react';
import { useFleet, useFleetStores } from '@/components/live/use-fleet';
import { useListCounts, useListSearch } from '@/components/live/use-list';
import { sessionTitle } from '@/components/sessions/session-labels';
import { useServerNow } from '@/components/ui/clock';
import type { RowGroup } from '@/components/ui/held-order';
import { useHeldOrder } from '@/components/ui/held-order';
import { itemsOf, useInbox } from './inbox-items';

const NOTHING: readonly InboxItem[] = [];

/** The items to show: filtered by the URL and the typed text, in a held order. */
export function useShownItems(box: RefObject<HTMLElement | null>) {
  const { fleet } = useFleetStores();
  const { list, state } = useInbox();
  useListCounts<InboxList>('/inbox', list?.countsAreOld ?? false, (fleet, page) => itemsOf(fleet).setCounts(page));
  const params = useSearchParams();
  const wanted = INBOX_KINDS.filter((kind) => params.getAll('kind').includes(kind));
  const [text, setText] = useState('');
  const isSearched = text.trim() !== '';
  // The server searches any typed text, because it knows the session of every item. It also reads a kind that may not be
  // fully loaded.
  const isPart = wanted.length > 0 && list?.next != null;
  const serverQuery = isSearched || isPart ? paramsOf(wanted, text.trim()).toString() : '';
  const search = useListSearch<InboxList>({
    path: '/inbox',
    query: serverQuery,
    put: (fleet, page) => itemsOf(fleet).putFound(page),
    join: (found, page) => ({ ...found, items: [...found.items, ...page.items], next: page.next }),
  });
  const foundIds = useMemo(() => new Set(search.found?.items.map(({ id }) => id)), [search.found]);
  const rows = list?.rows ?? NOTHING;
  const open = useMemo(() => rows.filter(({ doneAt }) => doneAt === null), [rows]);
  const snoozed = useServerNow((now) =>
    JSON.stringify(open.filter((item) => isSnoozed(item, now)).map(({ id }) => id)),
  );
  const shown = wanted.join(' ');
  const query = useDeferredValue(text);
  const sessions = useFleet(({ sessions }) => sessions);
  const order = useMemo(() => {
    const words = searchWords(query);
    const found = open.filter(
      (item) => foundIds.has(item.id) || isFound(words, item, sessions.get(item.sessionId ?? '')),
    );
    const kinds = INBOX_KINDS.filter((kind) => shown.split(' ').includes(kind));
    return inboxOrder(found, { kinds, snoozed: new Set<string>(JSON.parse(snoozed)) });
  }, [open, snoozed, shown, query, sessions, foundIds]);
  // Done items stay until the user has left, so the next row doesn't move under the pointer.
  const byId = useMemo(() => new Map(rows.map((item) => [item.id, item])), [rows]);
  const held = useHeldOrder(box, order, `${shown} ${query}`, (id) => byId.has(id));
  const shownIds = useMemo(() => new Set(held.order.flatMap(({ ids }) => ids)), [held.order]);
  useEffect(() => itemsOf(fleet).retain(shownIds), [fleet, shownIds]);
  const groups = held.order
    .map(({ name, ids }) => ({ name, items: ids.flatMap((id) => byId.get(id) ?? []) }))
    .filter(({ items }) => items.length > 0);
  return { list, state, open, byId, groups, held, wanted, search, text, setText, isSearched, isPart };
}

function paramsOf(kinds: readonly InboxKind[], text: string): URLSearchParams {
  const params = new URLSearchParams();
  for (const kind of kinds) params.append('kind', kind);
  if (text !== '') params.set('q', text);
  return params;
}

const GROUPS = [...INBOX_KINDS, 'snoozed'] as const;

/** Groups the shown open items by kind, longest waiting first. */
function inboxOrder(
  open: readonly InboxItem[],
  shown: { kinds: readonly InboxKind[]; snoozed: ReadonlySet<string> },
): RowGroup[] {
  const { kinds, snoozed } = shown;
  const sorted = [...open].sort((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1));
  const ofGroup = new Map<string, string[]>(GROUPS.map((name) => [name, []]));
  for (const { id, kind } of sorted) {
    if (kinds.length === 0 || kinds.includes(kind)) ofGroup.get(snoozed.has(id) ? 'snoozed' : kind)?.push(id);
  }
  return GROUPS.map((name) => ({ name, ids: ofGroup.get(name) ?? [] }));
}

/** True if an item or its session matches all words. */
function isFound(words: readonly string[], item: InboxItem, session: SessionSummary | undefined): boolean {
  if (words.length === 0) return true;
  const text = `${inboxText(item)}\n${session === undefined ? '' : `${sessionText(session)}\n${sessionTitle(session)}`}`;
  return words.every((word) => text.includes(word));
}
