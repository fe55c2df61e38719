import { MAX_ARGS_VALUES, MAX_JSON_DEPTH } from '@/lib/protocol/limits';
import { parseWellFormed } from '@/lib/protocol/well-formed';

/**
 * What the arguments of a call say; null while they are no JSON yet, and where they go deeper than a record may or hold
 * very many values. They came as text and so past the limits of a record: whoever walks through them later, here or in a
 * browser, would be held up by the one and overflow its stack with the other. They are shown as they were written, then.
 *
 * Arguments stream as pieces of JSON: worth parsing only where the last one may be the end.
 */
export function parsedArgs(argsText: string): unknown {
  if (!/[}\]"\del]/.test(lastLetter(argsText)) || !isBounded(argsText)) return null;
  try {
    // the text is well-formed, and yet an escape in it may say half a pair
    return parseWellFormed(argsText);
  } catch {
    return null;
  }
}

function lastLetter(text: string): string {
  let at = text.length - 1;
  while (at >= 0 && JSON_BLANKS.includes(text.charAt(at))) at -= 1;
  return text.charAt(at);
}

const JSON_BLANKS = ' \t\r\n';
const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/** One pass without recursion. What is no JSON at all is left for the parser. */
function isBounded(json: string): boolean {
  let [depth, values] = [0, 0];
  for (let at = 0; at < json.length; at += 1) {
    const letter = json.charCodeAt(at);
    if (letter === QUOTE) at = endOfString(json, at);
    else if (letter === COMMA) values += 1;
    else if (letter === OPEN_BRACE || letter === OPEN_BRACKET) {
      depth += 1;
      values += 1;
    } else if (letter === CLOSE_BRACE || letter === CLOSE_BRACKET) depth -= 1;
    if (depth > MAX_JSON_DEPTH || values > MAX_ARGS_VALUES) return false;
  }
  return true;
}

/** The index of the quote that closes the string opened at `start`. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let escapes = 0;
    while (json.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return json.length;
}
