/** Letters whose lower case is an ASCII letter or two characters: they stay, so that folding keeps every index. */
const UNFOLDABLE = /([\u0130\u212A])/;
const ASCII = /^[\0-\x7F]*$/;

/**
 * Text for comparing without case. It has the length of the original, so that an index into one is an index into the
 * other, and a letter outside ASCII never becomes an ASCII one: SQLite folds only ASCII, and must find the same.
 */
export function foldText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const folded = UNFOLDABLE.test(text)
    ? text
        .split(UNFOLDABLE)
        .map((part) => (UNFOLDABLE.test(part) ? part : part.toLowerCase()))
        .join('')
    : text.toLowerCase();
  // which of the two lower-case sigmas comes out depends on what follows
  return folded.replaceAll('ς', 'σ');
}
