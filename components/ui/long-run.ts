const LONG_RUN = /\S{2000}/;

/**
 * The class a text needs that has a run of thousands of signs without a space: none but kerning makes each of its signs
 * depend on its neighbours, and a browser that must break such a run anew for every line takes minutes for it.
 *
 * @returns undefined for every text people write
 */
export function longRunClass(text: string): string | undefined {
  return text.length > 2_000 && LONG_RUN.test(text) ? '[font-kerning:none]' : undefined;
}
