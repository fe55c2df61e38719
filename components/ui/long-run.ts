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
  if (text.length < LONG) return [];
  // A pattern that asks for so many at once would try again from every sign of a run that is one too short.
  return (text.match(/[^ \t\n]{1,500}/g) ?? []).filter((run) => run.length === LONG);
}
