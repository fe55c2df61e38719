/** Letters whose small form is a Latin one, or two characters: they stay, so that folding keeps every place. */
const UNFOLDABLE = /([\u0130\u212A])/;
const ASCII = /^[\0-\x7F]*$/;

/**
 * Text as it is compared where case does not matter. Of the same length as the text, so that places in the one are
 * places in the other, and a letter outside of ASCII never becomes one of ASCII: SQLite, which folds only those, finds
 * the same.
 */
export function foldText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const folded = UNFOLDABLE.test(text)
    ? text
        .split(UNFOLDABLE)
        .map((part) => (UNFOLDABLE.test(part) ? part : part.toLowerCase()))
        .join('')
    : text.toLowerCase();
  // which of the two small sigmas it is depends on what follows
  return folded.replaceAll('ς', 'σ');
}
