/** Rows of a list in their order, by their ids, in groups of which each has a name. */
export type RowOrder = readonly RowGroup[];

export interface RowGroup {
  name: string;
  ids: readonly string[];
}

/** What came in meanwhile stands behind all others, where it moves none of them. */
export const NEW_ROWS = 'new';

/**
 * What a list shows whose order is held while it is another one by now: every row where it was, without those that are
 * gone, and behind them in a group of its own what has come in.
 *
 * @param isThere whether there still is such a row, in the list or out of it, as one is that a search no longer finds
 * @returns and how many rows would go elsewhere, and how many have come in; the order is `held` while it needs no change
 */
export function heldOrder(
  held: RowOrder,
  now: RowOrder,
  isThere?: (id: string) => boolean,
): { order: RowOrder; moved: number; added: number } {
  if (held === now || held.length === 0) return { order: now, moved: 0, added: 0 };
  const groupNow = new Map(now.flatMap(({ name, ids }) => ids.map((id) => [id, name] as const)));
  const isHeld = new Set(held.flatMap(({ ids }) => ids));
  const fresh = [...groupNow.keys()].filter((id) => !isHeld.has(id));
  const isOpen = held.at(-1)?.name === NEW_ROWS;
  const order = (isOpen || fresh.length === 0 ? held : [...held, { name: NEW_ROWS, ids: [] }])
    .map(({ name, ids }) => ({
      name,
      ids: [...ids.filter((id) => groupNow.has(id) || isThere?.(id)), ...(name === NEW_ROWS ? fresh : [])],
    }))
    .filter(({ ids }) => ids.length > 0);
  let moved = 0;
  let added = 0;
  for (const { name, ids } of order) {
    if (name === NEW_ROWS) {
      added = ids.length;
      continue;
    }
    const staying = ids.filter((id) => groupNow.get(id) === name);
    moved += ids.length - staying.length;
    const wanted = now.find((group) => group.name === name)?.ids ?? [];
    moved += outOfOrder(staying, new Map(wanted.map((id, at) => [id, at])));
  }
  return { order: fresh.length === 0 && isSame(order, held) ? held : order, moved, added };
}

function isSame(one: RowOrder, other: RowOrder): boolean {
  return one.length === other.length && one.every(({ ids }, at) => ids.length === other[at]?.ids.length);
}

/** How few of them have to go elsewhere for the rest to stand in this order. */
function outOfOrder(ids: readonly string[], places: ReadonlyMap<string, number>): number {
  // The longest run of those that stand in order: of each length, the least place that such a run ends with.
  const ends: number[] = [];
  for (const id of ids) {
    const place = places.get(id) as number;
    let [from, to] = [0, ends.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((ends[middle] as number) < place) from = middle + 1;
      else to = middle;
    }
    ends[from] = place;
  }
  return ids.length - ends.length;
}
