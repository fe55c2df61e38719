import type { Position } from '@interlude/protocol/position';
import type { Item, Turn } from '@interlude/protocol/read-models';
import type { VirtualItem } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { LINE_KEPT, LONGEST_LINE } from '@/components/ui/fold-lines';
import { type RowVirtualizer, useProgressiveRows, useRowWindow } from '@/components/ui/row-window';
import { turnWeight } from './first-paint';
import { type Painted, TAIL_PX } from './painted';
import { pauseHeight } from './turn-list';

/** Room for what stands above the oldest turn, and below the newest. */
const TOP_PX = 48;
const END_PX = 24;

/** The turns that are laid out: what is in sight, and what is near it as it comes. */
export function useTurnRows(options: {
  turns: readonly Turn[];
  scroller: RefObject<HTMLDivElement | null>;
  /** What the server rendered of it. */
  painted: Painted | null;
  /** Whether the reader stays where they are, however near to the end. */
  held: boolean;
  follows: boolean;
}): { virtualizer: RowVirtualizer; rows: readonly VirtualItem[] } {
  const { turns, scroller, painted, held, follows } = options;
  // The same while one only grows, so that it does not have ten thousand rows measured again.
  const [laidOut, setLaidOut] = useState(turns);
  const measured = areSameTurns(laidOut, turns) ? laidOut : turns;
  if (measured !== laidOut) setLaidOut(measured);
  // A turn that has not been laid out here is as high as it was in the server's markup; others as they are guessed.
  const heightOf = useCallback((turn: Turn) => painted?.heights.get(turn.id) ?? estimateTurnHeight(turn), [painted]);
  const virtualizer = useRowWindow({
    scroller,
    follows,
    version: turns,
    count: turns.length,
    getItemKey: useCallback((index: number) => measured[index]?.id ?? index, [measured]),
    estimateSize: useCallback((index: number) => rowHeight(measured, index, heightOf), [measured, heightOf]),
    overscan: 4,
    paddingStart: TOP_PX,
    paddingEnd: END_PX,
    followOnAppend: true,
    scrollEndThreshold: held ? -1 : TAIL_PX,
    directDomUpdates: true,
    initialOffset: () => {
      const height = turns.reduce((sum, _, index) => sum + rowHeight(turns, index, heightOf), TOP_PX + END_PX);
      return Math.max(0, height - (painted?.fromEnd ?? 0));
    },
  });
  const near = virtualizer.getVirtualItems();
  const { range } = virtualizer;
  const waiting = useProgressiveRows(near, {
    keyOf: ({ key }) => key,
    weightOf: ({ index }) => turnWeight(turns[index] as Turn),
    // With the page's own first layout comes only what is in sight.
    firstWeight: 0,
    isInSight: ({ index }) => range !== null && index >= range.startIndex && index <= range.endIndex,
  });
  return { virtualizer, rows: waiting.size === 0 ? near : near.filter((row) => !waiting.has(row)) };
}

function areSameTurns(before: readonly Turn[], now: readonly Turn[]): boolean {
  return before === now || (before.length === now.length && before.every(({ id }, at) => id === now[at]?.id));
}

/** A turn's, as far as it is known, with the room before it. */
function rowHeight(turns: readonly Turn[], index: number, heightOf: (turn: Turn) => number): number {
  const turn = turns[index] as Turn;
  return heightOf(turn) + pauseHeight(turn, turns[index - 1]);
}

const LINE = 22;
const CHARACTERS_PER_LINE = 84;

/**
 * How high a turn will probably be, in pixels, before it has been laid out. The better the guess, the less the
 * scrollbar jumps.
 */
export function estimateTurnHeight(turn: Turn): number {
  const known = guesses.get(turn);
  if (known !== undefined) return known;
  const items = turn.items.reduce((sum, item) => sum + itemHeight(item), 0);
  const guess = 60 + (turn.kind === 'between-run' ? 28 : 0) + items;
  guesses.set(turn, guess);
  return guess;
}

/** Asked for again with every page of older turns; a turn that did not change keeps its identity. */
const guesses = new WeakMap<Turn, number>();

function itemHeight(item: Item): number {
  switch (item.kind) {
    case 'message':
      return textHeight(item.text) + 14 + (item.role === 'user' ? 14 : 0);
    case 'task':
      return item.phase === 'started' ? 76 : 24;
    case 'request':
      return item.outcome === null ? 80 : 26;
    default:
      return 25;
  }
}

/** Of more, the sum is all that matters: a megabyte of text is not scanned for its lines. */
const MOST_SCANNED = 20_000;

/** Lines count, of which very long ones are folded. */
function textHeight(text: string): number {
  let lines = 0;
  let shown = 0;
  let at = 0;
  while (at <= text.length && shown < MOST_SCANNED) {
    const next = text.indexOf('\n', at);
    const end = next === -1 ? text.length : next;
    const length = end - at > LONGEST_LINE ? LINE_KEPT : end - at;
    lines += Math.max(0.6, Math.ceil(length / CHARACTERS_PER_LINE));
    shown += length + 1;
    at = end + 1;
  }
  return (lines + Math.max(0, text.length - at) / CHARACTERS_PER_LINE) * LINE;
}

/**
 * When a session's oldest turns are removed, a reader of what is left stays where they are: the list sees to that, as it
 * does for turns that are put before others. Who reads one that goes is taken to the oldest that is left, and keeps the
 * keyboard.
 */
export function useRemoval(options: {
  virtualizer: RowVirtualizer;
  turns: readonly Turn[];
  removedUpTo: Position | undefined;
}): void {
  const { virtualizer, turns, removedUpTo } = options;
  const read = useRef<{ turnId: string | undefined; removedUpTo: Position | undefined }>(undefined);
  const focused = useRef<EventTarget | null>(null);
  useEffect(() => {
    const box = virtualizer.scrollElement;
    const note = ({ target }: FocusEvent) => {
      focused.current = target;
    };
    box?.addEventListener('focusin', note);
    return () => box?.removeEventListener('focusin', note);
  }, [virtualizer]);
  // after each render, because only the one before knows which turn was read
  useLayoutEffect(() => {
    const before = read.current;
    read.current = { turnId: turns[virtualizer.range?.startIndex ?? 0]?.id, removedUpTo };
    if (before === undefined || before.removedUpTo === removedUpTo) return;
    if (!turns.some(({ id }) => id === before.turnId)) virtualizer.scrollToOffset(0);
    const isLost = focused.current instanceof Element && !focused.current.isConnected;
    if (isLost && document.activeElement === document.body) virtualizer.scrollElement?.focus({ preventScroll: true });
  });
}
