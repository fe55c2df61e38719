import { RTL } from './verbatim';

/** Where a text begins to say something; what comes before the first letter is marks. */
const LOOKED_AT = 500;

const BEGINS_RTL = new RegExp(`^${RTL}`, 'u');

/**
 * Which way something runs that is made of several texts, by its first letter that is not code: `dir="auto"` looks into
 * nothing that has a direction of its own.
 */
export function directionOf(markdown: string): 'ltr' | 'rtl' {
  const letter = /\p{L}/u.exec(markdown.slice(0, LOOKED_AT).replace(/`[^`]*`/g, ''))?.[0] ?? '';
  return BEGINS_RTL.test(letter) ? 'rtl' : 'ltr';
}
