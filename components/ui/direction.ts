/** Where a text begins to say something; what comes before the first letter is marks. */
const LOOKED_AT = 500;

const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * Which way something runs that is made of several texts, by its first letter that is not code: `dir="auto"` looks into
 * nothing that has a direction of its own.
 */
export function directionOf(markdown: string): 'ltr' | 'rtl' {
  const letter = /\p{L}/u.exec(markdown.slice(0, LOOKED_AT).replace(/`[^`]*`/g, ''))?.[0] ?? '';
  return RTL.test(letter) ? 'rtl' : 'ltr';
}
