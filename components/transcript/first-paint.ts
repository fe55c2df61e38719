'use client';

import type { Turn } from '@interlude/protocol/read-models';
import { createContext } from 'react';
import { textsParsedAtOnce } from '@/components/ui/markdown/parse';
import { FIRST_PAINT_ROWS } from './item-rows';
import { FIRST_WEIGHT, itemWeight } from './row-weight';

/** What the server renders of a transcript, in elements: more than the tallest screen shows. */
const MOST_WEIGHT = 3_500;
/** A turn's own: its time, its line, its end. */
const TURN = 15;

/** The part of a transcript that comes rendered: its end, where the page opens. The browser lays out the rest. */
export interface FirstPaintPart {
  turns: readonly Turn[];
  /** The texts that come parsed; the others as they were written. */
  parsed: ReadonlySet<string>;
}

/** Not null on the server. */
export const FirstPaint = createContext<FirstPaintPart | null>(null);

export function firstPaintOf(turns: readonly Turn[]): FirstPaintPart {
  let weight = 0;
  let from = turns.length;
  while (from > 0 && weight < MOST_WEIGHT) {
    from -= 1;
    weight += turnWeight(turns[from] as Turn);
    // One that is too much is left out, but not the only one.
    if (weight > MOST_WEIGHT && from < turns.length - 1) {
      from += 1;
      break;
    }
  }
  const shown = turns.slice(from);
  return { turns: shown, parsed: textsParsedAtOnce(answersNewestFirst(shown)) };
}

/** About how many elements a turn is when it comes into the page. */
export function turnWeight({ items }: Turn): number {
  const { head, tail } = FIRST_PAINT_ROWS;
  const shown = items.length <= head + tail ? items : [...items.slice(0, head), ...items.slice(-tail)];
  // What is heavier is shown in part.
  return (
    TURN +
    Math.min(
      FIRST_WEIGHT,
      shown.reduce((sum, item) => sum + itemWeight(item), 0),
    )
  );
}

function* answersNewestFirst(turns: readonly Turn[]): Generator<string> {
  for (const { items } of turns.toReversed()) {
    for (const item of items.toReversed()) if (item.kind === 'message' && item.role === 'assistant') yield item.text;
  }
}
