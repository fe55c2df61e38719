import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import type { Item, RequestItem } from '@interlude/protocol/read-models';
import { isLarger } from '@/components/ui/is-larger';
import { NAME_CHARACTERS } from '@/components/ui/name';
import { STEP_WEIGHT } from '@/components/ui/row-window';

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

const REQUEST_CARD = 100;
/** A key with its value, or an option of a question. */
const FIELD = 7;
const MOST_FIELDS = 200;
/** Every so many characters cost as much to be laid out as an element. */
const INPUT_CHARACTERS_PER_ELEMENT = 8;
/** Inputs of more values take milliseconds each to be written out. */
const MOST_VALUES = 1_000;

/**
 * About how many elements an open request is.
 *
 * @param most of what is heavier, no more is looked at than it takes to know: its weight is this
 */
export function requestWeight({ title, toolName, input, options = [] }: RequestItem, most: number): number {
  const labels = options.map(({ label }) => label).join('');
  const names = title.slice(0, NAME_CHARACTERS) + (toolName ?? '').slice(0, MAX_ID_LENGTH) + labels;
  return Math.min(
    most,
    REQUEST_CARD + options.length * FIELD + oddCharacters(JSON.stringify(names)) + inputWeight(input, most),
  );
}

const weighed = new WeakMap<object, number>();

function inputWeight(input: unknown, most: number): number {
  if (typeof input !== 'object' || input === null) return weigh(input, most);
  const weight = weighed.get(input) ?? weigh(input, most);
  weighed.set(input, weight);
  return weight;
}

function weigh(input: unknown, most: number): number {
  if (isLarger(input, most * INPUT_CHARACTERS_PER_ELEMENT, MOST_VALUES)) return most;
  const json = JSON.stringify(input) ?? '';
  const fields = Math.min(MOST_FIELDS, json.match(/[{,]/g)?.length ?? 0);
  return fields * FIELD + json.length / INPUT_CHARACTERS_PER_ELEMENT + oddCharacters(json);
}

/** Those of a text in JSON that may be elements: signs, letters that run from right to left, spaces in a row. */
function oddCharacters(json: string): number {
  return json.match(/[^ -~]|\\[^"\\]| (?= |\\n|")/g)?.length ?? 0;
}
