import { MAX_JSON_DEPTH } from './limits';

/** The structure of JSON, read from its bytes before anything parses them. */

export const [QUOTE, COMMA, OPEN_BRACE, OPEN_BRACKET] = [0x22, 0x2c, 0x7b, 0x5b];
const [BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET] = [0x5c, 0x7d, 0x5d];

export function isOpening(byte: number | undefined): boolean {
  return byte === OPEN_BRACE || byte === OPEN_BRACKET;
}

export function isClosing(byte: number | undefined): boolean {
  return byte === CLOSE_BRACE || byte === CLOSE_BRACKET;
}

/**
 * How many values some JSON holds (its commas and opening brackets), and where it first goes deeper than
 * MAX_JSON_DEPTH; null if nowhere. One pass without recursion; text that is not JSON is left for the parser to refuse.
 */
export function measureJson(bytes: Uint8Array): { values: number; tooDeepAt: number | null } {
  let [depth, values] = [0, 0];
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === COMMA) values += 1;
    else if (isOpening(byte)) {
      depth += 1;
      values += 1;
      if (depth > MAX_JSON_DEPTH) return { values, tooDeepAt: index };
    } else if (isClosing(byte)) depth -= 1;
  }
  return { values, tooDeepAt: null };
}

/** The index of the quote that closes the string opened at `start`. */
export function endOfString(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let escapes = 0;
    while (bytes[end - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return bytes.length;
}
