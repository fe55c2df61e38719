import { decodeNamedCharacterReference } from 'decode-named-character-reference';
import { decodeNumericCharacterReference } from 'micromark-util-decode-numeric-character-reference';

/** The longest name, `CounterClockwiseContourIntegral`, has 31 letters. */
const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([\da-z]{2,31}));/gi;

/**
 * Markdown text may hold HTML entities. What they become is text for React, so it can't turn into markup any more. The
 * browser is asked for what a name means; the table of all names is the server's.
 */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(ENTITY, (whole, decimal, hex, name) => {
    if (name !== undefined) return decodeNamedCharacterReference(name) || whole;
    return decimal !== undefined
      ? decodeNumericCharacterReference(decimal, 10)
      : decodeNumericCharacterReference(hex, 16);
  });
}
