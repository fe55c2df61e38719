import type { Position } from '@interlude/protocol/position';
import type { Item, Turn } from '@interlude/protocol/read-models';
import type { VirtualItem } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { type RowVirtualizer, useProgressiveRows, useRowWindow } from '@/components/ui/row-window';
import { LONGEST_LINE, TRUNCATED_LENGTH } from '@/components/ui/truncate';
import { turnWeight } from './first-paint';
import { type ServerMarkup, TAIL_PX } from './server-markup';
import { pauseHeight } from './turn-list';

/** Space above the oldest and below the newest turn. */
const TOP_PX = 48;
const END_PX = 24;

/** The turns that are laid out: the turns in view first, then nearby turns step by step. */
export function useTurnRows(options: {
  turns: readonly Turn[];
  scroller: RefObject<HTMLDivElement | null>;
  painted: ServerMarkup | null;
  /** True to keep the reader's place, even near the end. */
  held: boolean;
  follows: boolean;
}): { virtualizer: RowVirtualizer; rows: readonly VirtualItem[] } {
  const { turns, scroller, painted, held, follows } = options;
  // Stable while a turn grows, so that not all rows are measured again.
  const [laidOut, setLaidOut] = useState(turns);
  const measured = areSameTurns(laidOut, turns) ? laidOut : turns;
  if (measured !== laidOut) setLaidOut(measured);
  // Until a turn is measured: its height in the server's markup, or an estimate.
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
    // The first layout has only the turns in view.
    firstWeight: 0,
    isInSight: ({ index }) => range !== null && index >= range.startIndex && index <= range.endIndex,
  });
  return { virtualizer, rows: waiting.size === 0 ? near : near.filter((row) => !waiting.has(row)) };
}

function areSameTurns(before: readonly Turn[], now: readonly Turn[]): boolean {
  return before === now || (before.length === now.length && before.every(({ id }, index) => id === now[index]?.id));
}

/** Height of a turn with the space above it. */
function rowHeight(turns: readonly Turn[], index: number, heightOf: (turn: Turn) => number): number {
  const turn = turns[index] as Turn;
  return heightOf(turn) + pauseHeight(turn, turns[index - 1]);
}

const LINE = 22;
const CHARACTERS_PER_LINE = 84;

/** Estimated height of a turn in pixels before its first layout. Better estimates make the scrollbar jump less. */
export function estimateTurnHeight(turn: Turn): number {
  const known = guesses.get(turn);
  if (known !== undefined) return known;
  const items = turn.items.reduce((sum, item) => sum + itemHeight(item), 0);
  const guess = 60 + (turn.kind === 'between-run' ? 28 : 0) + items;
  guesses.set(turn, guess);
  return guess;
}

/** Cached, because every page of older turns needs all estimates again. An unchanged turn keeps its identity. */
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

/** Lines of longer texts are estimated from their length. */
const MAX_SCANNED = 20_000;

/** Very long lines count as folded. */
function textHeight(text: string): number {
  let lines = 0;
  let shown = 0;
  let index = 0;
  while (index <= text.length && shown < MAX_SCANNED) {
    const next = text.indexOf('\n', index);
    const end = next === -1 ? text.length : next;
    const length = end - index > LONGEST_LINE ? TRUNCATED_LENGTH : end - index;
    lines += Math.max(0.6, Math.ceil(length / CHARACTERS_PER_LINE));
    shown += length + 1;
    index = end + 1;
  }
  return (lines + Math.max(0, text.length - index) / CHARACTERS_PER_LINE) * LINE;
}

/**
 * Keeps the reader's place when the session's oldest turns are removed. If the turn they read is removed, it scrolls to
 * the oldest remaining one and keeps the focus.
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
  // Runs after each render: the previous render knows which turn was in view.
  useLayoutEffect(() => {
    const before = read.current;
    read.current = { turnId: turns[virtualizer.range?.startIndex ?? 0]?.id, removedUpTo };
    if (before === undefined || before.removedUpTo === removedUpTo) return;
    if (!turns.some(({ id }) => id === before.turnId)) virtualizer.scrollToOffset(0);
    const isLost = focused.current instanceof Element && !focused.current.isConnected;
    if (isLost && document.activeElement === document.body) virtualizer.scrollElement?.focus({ preventScroll: true });
  });
}
