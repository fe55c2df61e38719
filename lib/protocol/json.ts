import { MAX_JSON_DEPTH } from './limits';

export const [QUOTE, COMMA, OPEN_BRACE, OPEN_BRACKET] = [0x22, 0x2c, 0x7b, 0x5b];
const [BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET] = [0x5c, 0x7d, 0x5d];

export function isOpening(byte: number | undefined): boolean {
  return byte === OPEN_BRACE || byte === OPEN_BRACKET;
}

export function isClosing(byte: number | undefined): boolean {
  return byte === CLOSE_BRACE || byte === CLOSE_BRACKET;
}

/**
 * Counts the values of JSON bytes (commas and opening brackets) before they are parsed, and finds where they first exceed
 * MAX_JSON_DEPTH; null if nowhere. One pass without recursion. Malformed JSON is left to the parser.
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

/**
 * Canonical JSON (RFC 8785): no blanks, keys ordered by UTF-16 code units, numbers as ECMAScript writes them. Omits
 * `undefined`. Half a surrogate pair becomes U+FFFD, as in a request to the server.
 *
 * Recurses as deep as the value: the caller bounds the depth.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return textOf(value);
  if (Array.isArray(value)) return `[${value.map((entry) => canonicalJson(entry ?? null)).join(',')}]`;
  if (typeof value === 'object' && value !== null) return objectOf(value as Record<string, unknown>);
  return JSON.stringify(value) ?? 'null';
}

function objectOf(value: Record<string, unknown>): string {
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
    .map((key) => `${textOf(key)}:${canonicalJson(value[key])}`);
  return `{${members.join(',')}}`;
}

function textOf(value: string): string {
  return JSON.stringify(value.isWellFormed() ? value : value.toWellFormed());
}

/** An escaped half of a surrogate pair. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/** True if the strings of this JSON may contain half a surrogate pair. */
export function mayBeIllFormed(json: string): boolean {
  return SURROGATE_ESCAPE.test(json) || !json.isWellFormed();
}

/**
 * `JSON.parse` with well-formed strings and keys.
 * @throws SyntaxError as JSON.parse does
 */
export function parseWellFormed(json: string): unknown {
  const value: unknown = JSON.parse(json);
  return mayBeIllFormed(json) ? wellFormed(value) : value;
}

/** `JSON.stringify` of the value with well-formed strings. */
export function stringifyWellFormed(value: unknown): string {
  const text = JSON.stringify(value);
  // JSON.stringify never escapes a whole pair
  return SURROGATE_ESCAPE.test(text) ? JSON.stringify(wellFormed(JSON.parse(text))) : text;
}

/**
 * The value with well-formed strings and keys; the same object if nothing changed. Half a surrogate pair, which JSON can
 * carry but UTF-8, databases and HTML can't, becomes U+FFFD where a text enters the system. Recurses as deep as the value.
 */
export function wellFormed<T>(value: T): T {
  return repaired(value) as T;
}

function repaired(value: unknown): unknown {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return repairedList(value);
  const names = new Names();
  let isSame = true;
  const entries = Object.entries(value).map(([key, before]): [string, unknown] => {
    const after = repaired(before);
    const name = key.isWellFormed() ? key : names.of(key, value);
    if (after !== before || name !== key) isSame = false;
    return [name, after];
  });
  return isSame ? value : Object.fromEntries(entries);
}

function repairedList(list: readonly unknown[]): unknown {
  const after = list.map(repaired);
  return after.every((entry, index) => entry === list[index]) ? list : after;
}

/** Keys that become equal get a number, so that no value is lost. */
class Names {
  readonly #used = new Map<string, number>();

  of(key: string, owner: object): string {
    const name = key.toWellFormed();
    for (let count = this.#used.get(name) ?? 0; ; count += 1) {
      const tried = count === 0 ? name : `${name}${count + 1}`;
      if (Object.hasOwn(owner, tried)) continue;
      this.#used.set(name, count + 1);
      return tried;
    }
  }
}

/**
 * True if a JSON value has more than `values` nested values, or more than `length` UTF-16 units in its keys and strings.
 * Stops counting at the limit.
 */
export function exceeds(value: unknown, length: number, values: number): boolean {
  const remaining: unknown[] = [value];
  while (remaining.length > 0) {
    const next = remaining.pop();
    values -= 1;
    if (typeof next === 'string') length -= next.length;
    else if (typeof next === 'object' && next !== null) {
      for (const name in next) {
        length -= name.length;
        remaining.push((next as Record<string, unknown>)[name]);
        if (remaining.length > values) return true;
      }
    }
    if (length < 0 || values < 0) return true;
  }
  return false;
}
