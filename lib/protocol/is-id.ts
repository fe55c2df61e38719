import { MAX_ID_LENGTH } from './limits';

/**
 * Whether a value can be an id (PROTOCOL.md §2): ids become keys and parts of paths, so what a database or a URL can't
 * carry is none. A path loses `.` and `..`, however they are written. By hand, because browsers have no schemas.
 */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_ID_LENGTH && /^(?!\.{1,2}$)[^\0\p{Surrogate}]+$/u.test(value);
}
