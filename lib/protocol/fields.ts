import { MAX_ID_LENGTH } from './limits';

/** Lenient access to untrusted messages: a field of the wrong type counts as absent, and nothing throws. */

export type Fields = Record<string, unknown>;

/** The parsed JSON; null if malformed. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value if it is an object, else an empty one. */
export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textsOf(value: unknown): string[] {
  return listOf(value).filter((entry): entry is string => typeof entry === 'string' && entry !== '');
}

/** The object without undefined, null and empty strings. */
export function compact<T extends object>(value: T): T {
  return Object.fromEntries(
    Object.entries(value).filter(([, field]) => field !== undefined && field !== null && field !== ''),
  ) as T;
}

export function addTo<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/**
 * True for a valid id (PROTOCOL.md §2). Ids become database keys and parts of URLs, which can't carry NUL or half
 * a surrogate pair, and which drop `.` and `..` from paths. Not a schema, because browsers don't load zod.
 */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_ID_LENGTH && /^(?!\.{1,2}$)[^\0\p{Surrogate}]+$/u.test(value);
}
