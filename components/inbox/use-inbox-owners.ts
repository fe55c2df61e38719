'use client';

import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { needsPerson } from '@interlude/protocol/inbox-rules';
import { inboxText, searchWords, sessionText } from '@interlude/protocol/list-search';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { INBOX_KINDS, type InboxKind } from '@interlude/protocol/vocabulary';
import { useSearchParams } from 'next/navigation';
import { type RefObject, useDeferredValue, useEffect, useMemo, useState } from 'react';
import { usePagePerson } from '@/components/access/page-person';
import { useFleet, useFleetStores } from '@/components/live/use-fleet';
import { useListSearch } from '@/components/live/use-list';
import { useServerNow } from '@/components/ui/clock';
import { type RowGroup, useHeldOrder } from '@/components/ui/held-order';
import { BY_OWNER, itemsOf, useInbox } from './inbox-items';
import { itemTitle, ownerTitle } from './inbox-labels';

/** A session or an agent with its items. */
export interface InboxOwner {
  id: string;
  /** The item that the row shows: the newest of the most urgent kind. */
  lead: InboxItem;
  /** Open items, most urgent first. */
  open: readonly InboxItem[];
  needsYou: boolean;
}

const NOTHING: readonly InboxItem[] = [];
const GROUPS = ['needs-you', 'later'] as const;

/** The sessions and agents to show: filtered by the URL and the typed text, in a held order. */
export function useInboxOwners(box: RefObject<HTMLElement | null>) {
  const { fleet } = useFleetStores();
  const { list, state } = useInbox();
  const person = usePagePerson();
  const params = useSearchParams();
  const wanted = INBOX_KINDS.filter((kind) => params.getAll('kind').includes(kind));
  const [text, setText] = useState('');
  const isSearched = text.trim() !== '';
  // The server searches any typed text, because it knows the session of every item. It also reads a kind that may not be
  // fully loaded.
  const isPart = wanted.length > 0 && list?.next != null;
  const search = useListSearch<InboxList>({
    path: '/inbox',
    query: isSearched || isPart ? paramsOf(wanted, text.trim()).toString() : '',
    put: (fleet, page) => itemsOf(fleet).putFound(page),
    join: (found, page) => ({ ...found, items: [...found.items, ...page.items], next: page.next }),
  });
  // The server searches less text than the browser, so a search is complete only once all items are loaded.
  const isWhole = list?.next === null || (!isSearched && search.found !== undefined && !search.hasMore);
  const foundIds = useMemo(() => new Set(search.found?.items.map(({ id }) => id)), [search.found]);
  const rows = list?.rows ?? NOTHING;
  const shown = wanted.join(' ');
  const query = useDeferredValue(text);
  const sessions = useFleet(({ sessions }) => sessions);
  // A string, so that the list renders only when an item starts or stops needing the reader.
  const needing = useServerNow((now) =>
    JSON.stringify(rows.filter((item) => needsPerson(item, now, person)).map(({ id }) => id)),
  );
  const [group] = useState(groupingByOwner);
  const needingIds = useMemo(() => new Set<string>(JSON.parse(needing)), [needing]);
  const owners = useMemo(() => group(rows, needingIds, shown), [group, rows, needingIds, shown]);
  const order = useMemo(() => {
    const words = searchWords(query);
    const isFound = ({ open }: InboxOwner) =>
      open.some((item) => foundIds.has(item.id) || matches(words, item, sessions.get(item.sessionId ?? '')));
    const matching = [...owners.values()].filter(({ lead }) => shown === '' || shown.split(' ').includes(lead.kind));
    return inboxOrder(matching.filter((owner) => owner.open.length > 0 && isFound(owner)));
  }, [owners, shown, query, sessions, foundIds]);
  // Rows whose items are done stay until the reader has left, so the next row doesn't move under the pointer.
  const held = useHeldOrder(box, order, `${shown} ${query}`, (id) => owners.has(id));
  const shownIds = useMemo(() => {
    const shown = new Set(held.order.flatMap(({ ids }) => ids));
    return new Set(rows.flatMap((item) => (shown.has(ownerId(item)) ? item.id : [])));
  }, [held.order, rows]);
  useEffect(() => itemsOf(fleet).retain(shownIds), [fleet, shownIds]);
  const groups = held.order
    .map(({ name, ids }) => ({ name, owners: ids.flatMap((id) => owners.get(id) ?? []) }))
    .filter(({ owners }) => owners.length > 0);
  return { state, owners, groups, needingIds, held, wanted, search, text, setText, isSearched, isPart, isWhole };
}

function paramsOf(kinds: readonly InboxKind[], text: string): URLSearchParams {
  const params = new URLSearchParams(BY_OWNER);
  for (const kind of kinds) params.append('kind', kind);
  if (text !== '') params.set('q', text);
  return params;
}

function ownerId({ agentId, sessionId }: InboxItem): string {
  return sessionId === null ? `agent ${agentId}` : `session ${sessionId}`;
}

/** Returns `ownersOf` with its former result as `before`. */
function groupingByOwner() {
  let before: ReadonlyMap<string, InboxOwner> = new Map();
  return (items: readonly InboxItem[], needing: ReadonlySet<string>, kinds: string) => {
    before = ownersOf(items, needing, kinds, before);
    return before;
  };
}

/**
 * Groups items by owner.
 *
 * @param kinds shown kinds, separated by blanks; items of other kinds follow
 * @param before former result. Unchanged owners stay the same objects, so that only changed rows render.
 */
export function ownersOf(
  items: readonly InboxItem[],
  needing: ReadonlySet<string>,
  kinds: string,
  before: ReadonlyMap<string, InboxOwner>,
): Map<string, InboxOwner> {
  const byOwner = new Map<string, InboxItem[]>();
  for (const item of items) {
    const own = byOwner.get(ownerId(item));
    if (own === undefined) byOwner.set(ownerId(item), [item]);
    else own.push(item);
  }
  const wanted = new Set(kinds === '' ? INBOX_KINDS : kinds.split(' '));
  const urgency = ({ id, kind }: InboxItem) => (wanted.has(kind) ? 0 : 2) + (needing.has(id) ? 0 : 1);
  const compare = (a: InboxItem, b: InboxItem) =>
    urgency(a) - urgency(b) || rank(a) - rank(b) || b.since - a.since || (a.id < b.id ? -1 : 1);
  return new Map(
    [...byOwner].map(([id, own]) => {
      const open = own.filter(({ doneAt }) => doneAt === null).sort(compare);
      const lead = (open[0] ?? own.toSorted((a, b) => (b.doneAt ?? 0) - (a.doneAt ?? 0))[0]) as InboxItem;
      const owner = { id, lead, open, needsYou: open.some((item) => needing.has(item.id)) };
      const known = before.get(id);
      return [id, known !== undefined && isSame(known, owner) ? known : owner];
    }),
  );
}

/** Failures that are folded: fewer are listed one by one. */
const MIN_FOLDED = 3;

/** Sessions with the same failure. */
export interface FailureFold extends InboxOwner {
  members: readonly InboxOwner[];
}

/**
 * Folds sessions with the same failure into one entry, in the place of the first. Done ones stay in their fold.
 *
 * @param group name of the group that lists the owners
 */
export function foldFailures(group: string, owners: readonly InboxOwner[]): (InboxOwner | FailureFold)[] {
  const equal = new Map<string, InboxOwner[]>();
  const keyOf = ({ id, lead }: InboxOwner) => (lead.kind === 'failure' ? `${group} ${itemTitle(lead)}` : id);
  for (const owner of owners) equal.set(keyOf(owner), [...(equal.get(keyOf(owner)) ?? []), owner]);
  return owners.flatMap((owner) => {
    const id = keyOf(owner);
    const members = equal.get(id) ?? [];
    if (members.length < MIN_FOLDED) return owner;
    const lead = members.find(({ open }) => open.length > 0)?.lead ?? owner.lead;
    const open = members.flatMap(({ open }) => open);
    return members[0] === owner ? { id, lead, open, needsYou: owner.needsYou, members } : [];
  });
}

function isSame(one: InboxOwner, other: InboxOwner): boolean {
  const isEqual = one.lead === other.lead && one.needsYou === other.needsYou && one.open.length === other.open.length;
  return isEqual && one.open.every((item, at) => item === other.open[at]);
}

function rank({ kind }: InboxItem): number {
  return INBOX_KINDS.indexOf(kind);
}

/** Most urgent first, and of the same urgency those that have waited longest. */
function inboxOrder(owners: readonly InboxOwner[]): RowGroup[] {
  const waiting = ({ open, lead }: InboxOwner) =>
    Math.min(...open.filter(({ kind }) => kind === lead.kind).map(({ since }) => since));
  const sorted = owners
    .map((owner) => ({ owner, since: waiting(owner) }))
    .sort((a, b) => rank(a.owner.lead) - rank(b.owner.lead) || a.since - b.since || (a.owner.id < b.owner.id ? -1 : 1));
  return GROUPS.map((name) => ({
    name,
    ids: sorted.flatMap(({ owner }) => (owner.needsYou === (name === 'needs-you') ? owner.id : [])),
  }));
}

/** True if an item or its session matches all words. */
function matches(words: readonly string[], item: InboxItem, session: SessionSummary | undefined): boolean {
  if (words.length === 0) return true;
  const names = `${ownerTitle(item, session) ?? ''}\n${item.request?.preview?.line ?? ''}`.toLowerCase();
  const text = `${inboxText(item)}\n${session === undefined ? '' : sessionText(session)}\n${names}`;
  return words.every((word) => text.includes(word));
}
