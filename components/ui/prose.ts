import { findEscapes } from './ansi-escapes';
import { bracketed, labelOf } from './verbatim';

/**
 * What hides text, or acts on what stands around it: controls, marks of direction, zero widths, tags. Joiners and
 * selectors stay, which words and emoji are made of.
 */
const HIDES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what this is about
  /([\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}])\1*/gu;

/**
 * What people and agents say to each other, to be read: as it was written, with words for what could not be seen
 * (`⟨ESC⟩`), so that nothing is hidden by it. Colours are left out, they hide nothing.
 */
export function proseText(text: string): string {
  return withoutColours(text)
    .replace(/\r\n?/g, '\n')
    .replace(HIDES, (run) => bracketed(labelOf(run)))
    .toWellFormed();
}

function withoutColours(text: string): string {
  const parts: string[] = [];
  let from = 0;
  for (const { from: start, to, colour } of findEscapes(text)) {
    if (colour === null) continue;
    parts.push(text.slice(from, start));
    from = to;
  }
  return from === 0 ? text : parts.join('') + text.slice(from);
}
