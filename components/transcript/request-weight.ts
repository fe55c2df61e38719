import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import type { RequestItem } from '@interlude/protocol/read-models';
import { isLarger } from '@/components/ui/is-larger';
import { NAME_CHARACTERS } from '@/components/ui/name';

const CARD = 100;
/** A key with its value, or an option of a question. */
const FIELD = 7;
const MOST_FIELDS = 200;
/** Every so many characters cost as much to be laid out as an element. */
const CHARACTERS_PER_ELEMENT = 8;
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
    CARD + options.length * FIELD + oddCharacters(JSON.stringify(names)) + inputWeight(input, most),
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
  if (isLarger(input, most * CHARACTERS_PER_ELEMENT, MOST_VALUES)) return most;
  const json = JSON.stringify(input) ?? '';
  const fields = Math.min(MOST_FIELDS, json.match(/[{,]/g)?.length ?? 0);
  return fields * FIELD + json.length / CHARACTERS_PER_ELEMENT + oddCharacters(json);
}

/** Those of a text in JSON that may be elements: signs, letters that run from right to left, spaces in a row. */
function oddCharacters(json: string): number {
  return json.match(/[^ -~]|\\[^"\\]| (?= |\\n|")/g)?.length ?? 0;
}
