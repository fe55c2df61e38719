import type { InboxItem, InboxList, InboxMarked } from '@interlude/protocol/inbox';
import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';
import { type InboxKind, noItems } from '@interlude/protocol/vocabulary';
import { ALL, type FleetStore } from '@/components/live/fleet-store';
import { RowCounts } from '@/components/live/row-counts';

/** What needs a person, as far as it is loaded, with what is done of it; and how much there is. */
export interface ListedItems {
  rows: readonly InboxItem[];
  /** Where the next page begins; null if all of it is loaded. */
  next: string | null;
  /** Of each kind what is not done, loaded or not. */
  counts: Record<InboxKind, number>;
  count: number;
  /** Something has changed that is not loaded: `counts` are from before. */
  countsAreOld: boolean;
}

/** So many of them are remembered: longer than anything takes that was asked for before. */
const MOST_LET_GO = 10_000;

/**
 * The items of the inbox that a page knows, and how many there are of each kind, loaded or not.
 *
 * Failure: what is done, and no list shows, is let go of: a page that is open for days would have all that was ever asked.
 */
class InboxItems {
  readonly #fleet: FleetStore;
  readonly #counts = new RowCounts(noItems);
  readonly #held = new Set<ReadonlySet<string>>();
  /** Items that were let go of, up to where each was known: what was read before does not bring them back. */
  readonly #letGo = new Map<string, Position>();
  #listed: ListedItems | undefined;
  #resets = 0;

  constructor(fleet: FleetStore) {
    this.#fleet = fleet;
    fleet.onItem = (row, known) => {
      this.#count(row, known);
      if (row.doneAt !== null) queueMicrotask(() => this.#letGoDone([row.id]));
    };
  }

  /** Undefined until some was read. The same object until something of it changes. */
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

  /** A page of the whole inbox, and how much there is of each kind. */
  take({ items, position, next, counts }: InboxList, after?: string): void {
    const { inbox } = this.#fleet;
    const rows = this.#news(items, position);
    this.#fleet.read('inbox', ALL, position, () => inbox.takeList(ALL, { rows, position, next, after }));
    this.takeCounts({ counts, position });
  }

  /** How much there is of the whole inbox. */
  takeCounts({ counts, position }: Pick<InboxList, 'counts' | 'position'>): void {
    this.#seeResets();
    this.#fleet.read('inbox', null, position, () => this.#counts.take(counts, position));
    this.#listed = undefined;
  }

  /** Items from anywhere in the inbox: its list goes on where it did. */
  takeFound({ items, position }: Pick<InboxList, 'items' | 'position'>): void {
    const rows = this.#news(items, position);
    this.#fleet.read('inbox', ALL, position, () => this.#fleet.inbox.takeSome(ALL, rows, position));
  }

  /** Items as a mark has left them. */
  takeMarked({ items, position }: InboxMarked): void {
    this.#fleet.read('inbox', null, position, () => {
      for (const item of this.#news(items, position)) this.#fleet.inbox.take(item, position);
    });
  }

  /** These are shown: they stay, though they may be done, until the returned function is called. */
  hold(ids: ReadonlySet<string>): () => void {
    this.#held.add(ids);
    // What is shown from now on is held first: most of it was shown before.
    return () =>
      queueMicrotask(() => {
        this.#held.delete(ids);
        this.#letGoDone(ids);
      });
  }

  #letGoDone(ids: Iterable<string>): void {
    const { inbox } = this.#fleet;
    for (const id of ids) {
      const isDone = (inbox.get(id)?.doneAt ?? null) !== null;
      if (!isDone || [...this.#held].some((held) => held.has(id))) continue;
      this.#letGo.set(id, inbox.letGo(id) ?? ORIGIN);
      const [first] = this.#letGo.keys();
      if (this.#letGo.size > MOST_LET_GO && first !== undefined) this.#letGo.delete(first);
    }
  }

  #news(items: readonly InboxItem[], position: Position): InboxItem[] {
    this.#seeResets();
    return items.filter(({ id }) => comparePositions(position, this.#letGo.get(id) ?? ORIGIN) > 0);
  }

  /** What comes up anew can't be told from what was counted and is not loaded: the server counts them again. */
  #count(row: InboxItem, known: { row: InboxItem; at: Position } | undefined): void {
    this.#seeResets();
    const { countedAt } = this.#counts;
    const isSure = [known?.at, this.#fleet.start?.after].some(
      (at) => at !== undefined && comparePositions(countedAt, at) <= 0,
    );
    const from = isSure && known !== undefined ? countedAs(known.row) : undefined;
    this.#counts.change({ at: row.updatedPosition, from, to: countedAs(row) });
  }

  /** Frames were missed for good: what was counted, and what was let go of, is of before. */
  #seeResets(): void {
    if (this.#resets === this.#fleet.resets) return;
    this.#resets = this.#fleet.resets;
    this.#counts.reset();
    this.#letGo.clear();
  }
}

const known = new WeakMap<FleetStore, InboxItems>();

/** The items of a page's fleet. */
export function itemsOf(fleet: FleetStore): InboxItems {
  const items = known.get(fleet) ?? new InboxItems(fleet);
  known.set(fleet, items);
  return items;
}

/** What counts as one of its kind: what is not done. */
function countedAs({ kind, doneAt }: InboxItem): InboxKind | null {
  return doneAt === null ? kind : null;
}

function countByKind(items: readonly InboxItem[]): Record<InboxKind, number> {
  const counts = noItems();
  for (const { kind, doneAt } of items) if (doneAt === null) counts[kind] += 1;
  return counts;
}

/** @param kinds those that count; none for all */
export function sumOfItems(counts: Record<InboxKind, number>, kinds: readonly InboxKind[] = []): number {
  const counted = kinds.length === 0 ? Object.values(counts) : kinds.map((kind) => counts[kind]);
  return counted.reduce((sum, count) => sum + count, 0);
}
