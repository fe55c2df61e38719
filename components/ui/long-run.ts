const LONG = 500;

/**
 * The class a text needs that has a run of hundreds of signs without a space: none but kerning makes each of its signs
 * depend on its neighbours. A browser that must break such a run anew for every line holds up the page for runs of two
 * thousand, and takes minutes for longer ones.
 *
 * @returns undefined for every text people write
 */
export function longRunClass(text: string): string | undefined {
  return hasLongRun(text) ? '[font-kerning:none]' : undefined;
}

function hasLongRun(text: string): boolean {
  if (text.length < LONG) return false;
  // A pattern that asks for so many at once would try again from every sign of a run that is one too short.
  for (const [run] of text.matchAll(/\S{1,500}/g)) if (run.length === LONG) return true;
  return false;
}
