/** The end of a text, as far as it is shown. */
export interface LastPart {
  text: string;
  /** Whether something before it is left out. */
  isCut: boolean;
}

/**
 * The last lines of a text, of which a single one may be a megabyte. Nothing before them is looked at: what is shown is
 * cut first and cleaned, split and parsed then.
 */
export function lastPart(text: string, limits: { lines: number; characters: number }): LastPart {
  const least = Math.max(0, text.length - limits.characters);
  let from = text.length;
  let end = text.length;
  for (let lines = 0; lines < limits.lines && from >= least; lines++) {
    end = end === 0 ? -1 : text.lastIndexOf('\n', end - 1);
    from = end + 1;
    if (from === 0) break;
  }
  from = Math.max(from, least);
  // never between the two halves of a character
  if (from > 0 && /[\udc00-\udfff]/.test(text.charAt(from))) from += 1;
  return { text: text.slice(from), isCut: from > 0 };
}
