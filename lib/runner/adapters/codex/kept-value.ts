import { fittingText, jsonBytes } from '../writer/long-text';

/** What is kept of a native message that nobody shows: as it is while it is small, else as text that fits a record. */
const MOST_AS_IS = 32 * 1024;
const MOST_AS_TEXT = 128 * 1024;

export function keptValue(value: object): object {
  const text = JSON.stringify(value);
  return text.length <= MOST_AS_IS && jsonBytes(text) <= 2 * MOST_AS_IS
    ? value
    : { json: fittingText(text, MOST_AS_TEXT) };
}
