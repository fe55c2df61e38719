import type { Item } from '@interlude/protocol/read-models';
import { STEP_WEIGHT } from '@/components/ui/row-window';
import { requestWeight } from './request-weight';

/** What is laid out of a turn in one go, in elements: some forty milliseconds, and more than the tallest screen shows. */
export const FIRST_WEIGHT = 1_500;

/** Of a text so much is shown at first, as written or parsed; every so many signs may be an element, or cost as much. */
const FIRST_CHARACTERS = 5_000;
const FIRST_PARSED = 4_000;
const CHARACTERS_PER_ELEMENT = 8;
const CARD = 120;
const LINE = 14;

/** About how many elements an item is when it comes into the page. */
export function itemWeight(item: Item): number {
  switch (item.kind) {
    case 'message': {
      const shown = Math.min(item.text.length, item.role === 'assistant' ? FIRST_PARSED : FIRST_CHARACTERS);
      return LINE + shown / CHARACTERS_PER_ELEMENT;
    }
    case 'task':
      return item.phase === 'started' ? CARD : LINE;
    case 'request':
      // At most one at a time.
      return item.outcome === null ? requestWeight(item, STEP_WEIGHT) : LINE;
    default:
      return LINE;
  }
}
