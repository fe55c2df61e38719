const LONG = 500;

/**
 * The class a text needs that has a run of hundreds of signs without a space: none but kerning makes each of its signs
 * depend on its neighbours. A browser that must break such a run anew for every line holds up the page for runs of two
 * thousand, and takes minutes for longer ones.
 *
 * @returns undefined for every text people write
 */
export function longRunClass(text: string): string | undefined {
  return longestRuns(text).length > 0 ? '[font-kerning:none]' : undefined;
}

/** The parts of a text, each of hundreds of signs, within which no line ends by itself. A space that joins ends none. */
export function longestRuns(text: string): string[] {
  const runs: string[] = [];
  for (let from = 0; from + LONG <= text.length; ) {
    // From behind: of what people write, a sign or two of each five hundred are looked at.
    let at = from + LONG - 1;
    while (at >= from && !isSpace(text.charCodeAt(at))) at -= 1;
    if (at < from) {
      runs.push(text.slice(from, from + LONG));
      from += LONG;
    } else from = at + 1;
  }
  return runs;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a;
}
