'use client';

import { clsx } from 'clsx';
import { type RefObject, useEffect, useState } from 'react';
import { afterPress, SettledButton } from './misclick-guard';

/** `3 moved, 2 new`: what a held list does not show yet, and the way to it. */
export function HeldChanges(props: { moved: number; added: number; onShow: () => void; className?: string }) {
  const { moved, added, onShow, className } = props;
  if (moved + added === 0) return null;
  const words = [moved > 0 && `${moved.toLocaleString('en')} moved`, added > 0 && `${added.toLocaleString('en')} new`];
  return (
    <SettledButton
      of="changes"
      onPress={onShow}
      className={clsx(
        'hit tabular shrink-0 whitespace-nowrap rounded-sm text-2xs text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink',
        className,
      )}
    >
      {words.filter(Boolean).join(', ')}
    </SettledButton>
  );
}

/**
 * Keeps rows where they are while the pointer is over them or the focus walks through them: what is pressed is what was
 * seen there. What changes is shown in place, and the order follows once the reader has left, or says so.
 *
 * @param now the order as it is; the same object as long as it is the same
 * @param of what is listed: once that is something else, as another search is, there is nothing to hold
 * @param isThere as of `heldOrder`
 */
export function useHeldOrder(
  box: RefObject<HTMLElement | null>,
  now: RowOrder,
  of = '',
  isThere?: (id: string) => boolean,
): { order: RowOrder; moved: number; added: number; release: () => void } {
  const isHeld = useHolds(box);
  const [kept, setKept] = useState({ of, order: now });
  const holds = isHeld && kept.of === of && kept.order.length > 0;
  const shown = heldOrder(holds ? kept.order : now, now, isThere);
  // What has come in keeps its place from then on, too.
  const keeps = holds && shown.added === 0 ? kept.order : shown.order;
  if (kept.order !== keeps || kept.of !== of) setKept({ of, order: keeps });
  return { ...shown, release: () => setKept({ of, order: now }) };
}

const WALKED = 'a:focus-visible, button:focus-visible, li:focus-visible, li :focus-visible';

/** Whether the pointer is over it, or the focus is in it that a key has brought there. */
function useHolds(box: RefObject<HTMLElement | null>): boolean {
  const [isHeld, setIsHeld] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let isOver = false;
    const look = () => {
      const { activeElement } = document;
      // A field that stands beside the rows holds none. A reader who pressed a row with the pointer has gone on from it.
      const walks = element.contains(activeElement) && activeElement?.matches(WALKED);
      setIsHeld(document.visibilityState === 'visible' && (isOver || (walks ?? false)));
    };
    const onPointer = ({ type }: PointerEvent) => {
      if (isOver && type !== 'pointerleave') return;
      isOver = type !== 'pointerleave';
      // A finger leaves as it lets go, before its press has come to anything.
      if (isOver) look();
      else afterPress(look);
    };
    const onFocus = ({ type, relatedTarget }: FocusEvent) => {
      // On its way from row to row it is in neither.
      if (type === 'focusin' || !element.contains(relatedTarget as Node | null)) afterPress(look);
    };
    const listening = new AbortController();
    const { signal } = listening;
    // A pointer that was there before has not entered: it is known by its first move.
    for (const type of ['pointerenter', 'pointermove', 'pointerleave'] as const) {
      element.addEventListener(type, onPointer, { signal });
    }
    for (const type of ['focusin', 'focusout'] as const) element.addEventListener(type, onFocus, { signal });
    document.addEventListener('visibilitychange', look, { signal });
    return () => listening.abort();
  }, [box]);
  return isHeld;
}

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
