import { exceeds } from '@interlude/protocol/json';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import type { Item, RequestItem } from '@interlude/protocol/read-models';
import { NAME_CHARACTERS } from '@/components/ui/name';
import { STEP_WEIGHT } from '@/components/ui/row-window';

/** Elements of a turn laid out in one step: about forty milliseconds, more than the tallest screen shows. */
export const FIRST_WEIGHT = 1_500;

/** Longest text shown at first, as written and as parsed, and the number of characters that weigh one element. */
const FIRST_CHARACTERS = 5_000;
const FIRST_PARSED = 4_000;
const CHARACTERS_PER_ELEMENT = 8;
const CARD = 120;
const LINE = 14;

/** Approximate number of elements of an item. */
export function itemWeight(item: Item): number {
  switch (item.kind) {
    case 'message': {
      const shown = Math.min(item.text.length, item.role === 'assistant' ? FIRST_PARSED : FIRST_CHARACTERS);
      return LINE + shown / CHARACTERS_PER_ELEMENT;
    }
    case 'task':
      return item.phase === 'started' ? CARD : LINE;
    case 'request':
      // Weighs at most one step.
      return item.outcome === null ? requestWeight(item, STEP_WEIGHT) : LINE;
    default:
      return LINE;
  }
}

const REQUEST_CARD = 100;
/** A key with its value, or an option. */
const FIELD = 7;
const MAX_FIELDS = 200;
/** This many characters take as long to lay out as an element. */
const INPUT_CHARACTERS_PER_ELEMENT = 8;
/** Larger inputs take milliseconds each to serialize. */
const MAX_VALUES = 1_000;

/**
 * Approximate number of elements of an open request.
 *
 * @param max upper bound of the result; nothing is examined beyond it
 */
export function requestWeight({ title, toolName, input, options = [] }: RequestItem, max: number): number {
  const labels = options.map(({ label }) => label).join('');
  const names = title.slice(0, NAME_CHARACTERS) + (toolName ?? '').slice(0, MAX_ID_LENGTH) + labels;
  return Math.min(
    max,
    REQUEST_CARD + options.length * FIELD + oddCharacters(JSON.stringify(names)) + inputWeight(input, max),
  );
}

const weighed = new WeakMap<object, number>();

function inputWeight(input: unknown, max: number): number {
  if (typeof input !== 'object' || input === null) return weigh(input, max);
  const weight = weighed.get(input) ?? weigh(input, max);
  weighed.set(input, weight);
  return weight;
}

function weigh(input: unknown, max: number): number {
  if (exceeds(input, max * INPUT_CHARACTERS_PER_ELEMENT, MAX_VALUES)) return max;
  const json = JSON.stringify(input) ?? '';
  const fields = Math.min(MAX_FIELDS, json.match(/[{,]/g)?.length ?? 0);
  return fields * FIELD + json.length / INPUT_CHARACTERS_PER_ELEMENT + oddCharacters(json);
}

/** Characters of a JSON text that may become elements: symbols, right-to-left letters, runs of spaces. */
function oddCharacters(json: string): number {
  return json.match(/[^ -~]|\\[^"\\]| (?= |\\n|")/g)?.length ?? 0;
}
