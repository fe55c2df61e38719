'use client';

import type { Turn } from '@interlude/protocol/read-models';
import { createContext } from 'react';
import { highlightAtOnce } from '@/components/ui/markdown/highlight-at-once';
import { textsParsedAtOnce } from '@/components/ui/markdown/parse';
import { FIRST_PAINT_ROWS } from './item-rows';
import { FIRST_WEIGHT, itemWeight } from './row-weight';

/** Elements of a transcript that the server renders: more than the tallest screen shows. */
const MAX_WEIGHT = 2_000;
/** Elements of a turn without its items. */
const TURN = 15;

/** The end of a transcript, where the page opens: the part that the server renders. */
export interface FirstPaintPart {
  turns: readonly Turn[];
  /** Texts that the server parses; the others are rendered as written. */
  parsed: ReadonlySet<string>;
  highlighted: ReturnType<typeof highlightAtOnce>;
}

/** Null in the browser. */
export const FirstPaint = createContext<FirstPaintPart | null>(null);

export function firstPaintOf(turns: readonly Turn[]): FirstPaintPart {
  let weight = 0;
  let from = turns.length;
  while (from > 0 && weight < MAX_WEIGHT) {
    from -= 1;
    weight += turnWeight(turns[from] as Turn);
    // Leaves out a turn that is too large, unless it is the only one.
    if (weight > MAX_WEIGHT && from < turns.length - 1) {
      from += 1;
      break;
    }
  }
  const shown = turns.slice(from);
  const parsed = textsParsedAtOnce(answersNewestFirst(shown));
  return { turns: shown, parsed, highlighted: highlightAtOnce(parsed) };
}

/** Approximate number of elements of a turn. */
export function turnWeight({ items }: Turn): number {
  const { head, tail } = FIRST_PAINT_ROWS;
  const shown = items.length <= head + tail ? items : [...items.slice(0, head), ...items.slice(-tail)];
  // Larger turns are shown in part.
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
