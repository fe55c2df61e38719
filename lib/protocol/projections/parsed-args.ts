import { measureJson, parseWellFormed } from '../json';
import { MAX_ARGS_VALUES } from '../limits';

/**
 * The arguments of a call; null while they are not JSON yet, and if they are nested deeper than a record may be or hold
 * very many values. They came as text, so the limits of a record did not apply: code that walks through them later, here
 * or in a browser, would overflow its stack or take too long. Such arguments are shown as they were written.
 *
 * Arguments stream as pieces of JSON, so parsing is worth it only if the last piece may be the end.
 */
export function parsedArgs(argsText: string): unknown {
  if (!/[}\]"\del]/.test(lastLetter(argsText)) || !isBounded(argsText)) return null;
  try {
    // the text is well-formed, but an escape in it may still stand for half a pair
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

function isBounded(json: string): boolean {
  const { values, tooDeepAt } = measureJson(new TextEncoder().encode(json));
  return tooDeepAt === null && values <= MAX_ARGS_VALUES;
}
