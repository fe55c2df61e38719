import { ALL, type FleetStore } from '@/components/live/fleet-store';
import { RowCounts } from '@/components/live/row-counts';
import { type InboxItem, type InboxKind, type InboxList, noItems } from '@/lib/protocol/inbox';
import type { Position } from '@/lib/protocol/position';

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

/** How many items of each kind there are, loaded or not. It comes with the inbox. */
class ItemCounts {
  readonly #fleet: FleetStore;
  readonly #counts = new RowCounts(noItems);
  #listed: ListedItems | undefined;

  constructor(fleet: FleetStore) {
    this.#fleet = fleet;
  }

  /** The same object until something of it changes. */
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

  take(counts: InboxList['counts'], position: Position): void {
    this.#counts.take(counts, position);
    this.#listed = undefined;
  }

  /** What comes up anew can't be told from what was counted and is not loaded: the server counts them again. */
  count(row: InboxItem, known: { row: InboxItem; at: Position } | undefined): void {
    const isSure = known !== undefined && this.#fleet.isCountedBy(this.#counts, known);
    this.#counts.change({
      at: row.updatedPosition,
      from: isSure ? countedAs(known.row) : undefined,
      to: countedAs(row),
    });
  }

  reset(): void {
    this.#counts.reset();
  }
}

const counters = new WeakMap<FleetStore, ItemCounts>();

function counterOf(fleet: FleetStore): ItemCounts {
  const known = counters.get(fleet) ?? new ItemCounts(fleet);
  counters.set(fleet, known);
  fleet.itemCounter = known;
  return known;
}

/** Takes a page of the whole inbox, and how much there is of each kind. */
export function takeItems(fleet: FleetStore, list: InboxList, after?: string): void {
  counterOf(fleet);
  fleet.takeInbox(list, after);
}

/** Undefined until some was read. */
export function listedItems(fleet: FleetStore): ListedItems | undefined {
  return counterOf(fleet).listed;
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
