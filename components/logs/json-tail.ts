import { isJson } from '@interlude/protocol/fields';

/** Deeper levels are not indented further. */
const MAX_INDENT = 40;
/** Number of candidates tried as the start. */
const TRIES = 4;

/**
 * The JSON object or array that a message is or ends with.
 *
 * @returns its start, or null
 */
export function jsonTailAt(message: string): number | null {
  const text = message.trimEnd();
  const close = text.at(-1);
  if (close !== '}' && close !== ']') return null;
  const begins = /(?:^|[\s=:(])([{[])/g;
  for (let tries = 0; tries < TRIES; tries++) {
    const match = begins.exec(text);
    if (match === null) return null;
    const at = match.index + match[0].length - 1;
    begins.lastIndex = at;
    if (isJson(text.slice(at))) return at;
    begins.lastIndex = at + 1;
  }
  return null;
}

/** Spreads valid JSON over many lines. Numbers, keys and strings stay as written. */
export function indentJson(json: string): string {
  let out = '';
  let depth = 0;
  /** True after a token that opens an object or an array. */
  let opens = false;
  const newLine = () => `\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s"[\]{},:]+/g)) {
    if (token === '}' || token === ']') {
      depth -= 1;
      out += opens ? token : newLine() + token;
      opens = false;
      continue;
    }
    if (opens) out += newLine();
    opens = token === '{' || token === '[';
    out += token;
    if (opens) depth += 1;
    else if (token === ',') out += newLine();
    else if (token === ':') out += ' ';
  }
  return out;
}
