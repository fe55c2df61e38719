'use client';

import type { MarkInbox } from '@interlude/protocol/commands';
import type { InboxItem, InboxList, InboxMarked } from '@interlude/protocol/inbox';
import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';
import { type InboxKind, noItems } from '@interlude/protocol/vocabulary';
import { useState } from 'react';
import { postJson } from '@/components/live/fetch-json';
import { ALL, type FleetStore } from '@/components/live/fleet-store';
import { changedText } from '@/components/live/mark-items';
import { RowCounts } from '@/components/live/row-counts';
import { useFleet, useFleetStores } from '@/components/live/use-fleet';
import { useLiveList } from '@/components/live/use-list';

/** The loaded items, including done ones, and the counts of all. */
export interface ListedItems {
  rows: readonly InboxItem[];
  /** Cursor of the next page; null if all items are loaded. */
  next: string | null;
  /** Open items by kind, including those not loaded. */
  counts: Record<InboxKind, number>;
  count: number;
  /** `counts` may be outdated, because an item that is not loaded has changed. */
  countsAreOld: boolean;
}

/** Dropped items remembered, so that a slow response can't restore them. */
const MAX_DROPPED = 10_000;

/**
 * The inbox of a page: the loaded items, and the counts of all.
 *
 * Done items that no list shows are dropped, so a page that is open for days doesn't grow.
 */
class InboxItems {
  readonly #fleet: FleetStore;
  readonly #counts = new RowCounts(noItems);
  readonly #held = new Set<ReadonlySet<string>>();
  /** Dropped items with their last known position. Older responses don't restore them. */
  readonly #dropped = new Map<string, Position>();
  #listed: ListedItems | undefined;
  #resets = 0;

  constructor(fleet: FleetStore) {
    this.#fleet = fleet;
    fleet.onItem = (row, known) => {
      this.#count(row, known);
      if (row.doneAt !== null) queueMicrotask(() => this.#dropDone([row.id]));
    };
  }

  /** Undefined until a page is loaded. Stable until it changes. */
  get listed(): ListedItems | undefined {
    const list = this.#fleet.inbox.list(ALL);
    if (list === undefined) return undefined;
    const { rows, next } = list;
    const countsAreOld = next !== null && this.#counts.isOld;
    if (this.#listed?.rows !== rows || this.#listed.countsAreOld !== countsAreOld) {
      const counts = next === null ? countByKind(rows) : this.#counts.now;
      this.#listed = { rows, next, counts, count: sumOfItems(counts), countsAreOld };
    }
    return this.#listed;
  }

  /** Applies a page with its counts. */
  putList({ items, position, next, counts }: InboxList, after?: string): void {
    const { inbox } = this.#fleet;
    const rows = this.#withoutDropped(items, position);
    this.#fleet.put('inbox', ALL, position, () => inbox.putList(ALL, { rows, position, next, after }));
    this.setCounts({ counts, position });
  }

  /** Applies counts. */
  setCounts({ counts, position }: Pick<InboxList, 'counts' | 'position'>): void {
    this.#handleResets();
    this.#fleet.put('inbox', null, position, () => this.#counts.set(counts, position));
    this.#listed = undefined;
  }

  /** Applies items from anywhere in the inbox; its cursor stays. */
  putFound({ items, position }: Pick<InboxList, 'items' | 'position'>): void {
    const rows = this.#withoutDropped(items, position);
    this.#fleet.put('inbox', ALL, position, () => this.#fleet.inbox.putRows(ALL, rows, position));
  }

  /** Applies the result of a mark. */
  putMarked({ items, position }: InboxMarked): void {
    this.#fleet.put('inbox', null, position, () => {
      for (const item of this.#withoutDropped(items, position)) this.#fleet.inbox.put(item, position);
    });
  }

  /** Keeps items, even done ones, until the returned function is called. */
  retain(ids: ReadonlySet<string>): () => void {
    this.#held.add(ids);
    // Deferred, so that the next list can hold them first.
    return () =>
      queueMicrotask(() => {
        this.#held.delete(ids);
        this.#dropDone(ids);
      });
  }

  #dropDone(ids: Iterable<string>): void {
    const { inbox } = this.#fleet;
    for (const id of ids) {
      const isDone = (inbox.get(id)?.doneAt ?? null) !== null;
      if (!isDone || [...this.#held].some((held) => held.has(id))) continue;
      this.#dropped.set(id, inbox.remove(id) ?? ORIGIN);
      const [first] = this.#dropped.keys();
      if (this.#dropped.size > MAX_DROPPED && first !== undefined) this.#dropped.delete(first);
    }
  }

  #withoutDropped(items: readonly InboxItem[], position: Position): InboxItem[] {
    this.#handleResets();
    return items.filter(({ id }) => comparePositions(position, this.#dropped.get(id) ?? ORIGIN) > 0);
  }

  /** The server may have counted a new item before this page loaded it. In that case the server counts again. */
  #count(row: InboxItem, known: { row: InboxItem; at: Position } | undefined): void {
    this.#handleResets();
    const { countedAt } = this.#counts;
    const isSure = [known?.at, this.#fleet.start?.after].some(
      (at) => at !== undefined && comparePositions(countedAt, at) <= 0,
    );
    const from = isSure && known !== undefined ? countedAs(known.row) : undefined;
    this.#counts.change({ at: row.updatedPosition, from, to: countedAs(row) });
  }

  /** After a gap, counts and dropped items are outdated. */
  #handleResets(): void {
    if (this.#resets === this.#fleet.resets) return;
    this.#resets = this.#fleet.resets;
    this.#counts.reset();
    this.#dropped.clear();
  }
}

const known = new WeakMap<FleetStore, InboxItems>();

/** The inbox of a fleet store. */
export function itemsOf(fleet: FleetStore): InboxItems {
  const items = known.get(fleet) ?? new InboxItems(fleet);
  known.set(fleet, items);
  return items;
}

/** The kind an item counts for; null if it is done. */
function countedAs({ kind, doneAt }: InboxItem): InboxKind | null {
  return doneAt === null ? kind : null;
}

function countByKind(items: readonly InboxItem[]): Record<InboxKind, number> {
  const counts = noItems();
  for (const { kind, doneAt } of items) if (doneAt === null) counts[kind] += 1;
  return counts;
}

/** @param kinds counted kinds; none for all */
export function sumOfItems(counts: Record<InboxKind, number>, kinds: readonly InboxKind[] = []): number {
  const counted = kinds.length === 0 ? Object.values(counts) : kinds.map((kind) => counts[kind]);
  return counted.reduce((sum, count) => sum + count, 0);
}

/** The loaded items, including those completed during this visit, and the request for more. */
export function useInbox() {
  const list = useFleet((fleet) => itemsOf(fleet).listed);
  const state = useLiveList<InboxList>({
    table: 'inbox',
    path: '/inbox',
    next: list?.next,
    put: (fleet, page, after) => itemsOf(fleet).putList(page, after),
  });
  return { list, state };
}

/** Marks items as shown. Reports failures, and items that have changed since. */
export function useMarks() {
  const { fleet } = useFleetStores();
  const [failure, setFailure] = useState<string | null>(null);
  const mark = async (body: MarkInbox) => {
    setFailure(null);
    try {
      const marked = await postJson<InboxMarked>('/inbox/marks', body);
      itemsOf(fleet).putMarked(marked);
      const changedCount = marked.changed.length;
      if (changedCount > 0) setFailure(changedText(changedCount));
    } catch (error) {
      setFailure((error as Error).message);
    }
  };
  return { mark, failure };
}
