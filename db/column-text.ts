/** What UTF-8 can't hold, and what ends a string in C. In Unicode mode a whole pair is no surrogate. */
const UNSTORABLE = /[\0\p{Surrogate}]/u;
const EVERY_UNSTORABLE = new RegExp(UNSTORABLE, 'gu');

/**
 * Text that is safe in a column of its own. Agents may send half a surrogate pair or a NUL; SQLite would store either,
 * but libSQL aborts the whole process on reading the first back and cuts the text off at the second. Inside a JSON
 * column both stay escaped and need nothing.
 */
export function columnText(value: string): string {
  return UNSTORABLE.test(value) ? value.replace(EVERY_UNSTORABLE, '\uFFFD') : value;
}
