import { endOfFirstPart } from './first-part';
import { bracketed, INVISIBLE, labelOf } from './verbatim';

/**
 * What hides text, or acts on what stands around it. Line breaks and tabs stay, and joiners and selectors, which words
 * and emoji are made of.
 */
const HIDES = new RegExp(`((?![\\t\\n\\r\\u200c\\u200d\\p{Variation_Selector}])[${INVISIBLE}])\\1*`, 'gu');

/** What ends a line. A lone return of the carriage does, too: what stands before it stays in sight. */
const LINE_BREAKS = ['\r\n', '\r', '\u2028', '\u2029'] as const;

/** More words for what hides than this, in the part that is shown at first, would hold up the page. */
const MOST_HIDDEN = 1_000;

/**
 * What people and agents say to each other, to be read: all of it as it was written, with words for what could not be
 * seen (`⟨ESC⟩`), so that nothing is hidden by it. Colours are no exception: what looks like one has room for words.
 */
export function proseText(text: string): string {
  return LINE_BREAKS.reduce((lines, lineBreak) => lines.split(lineBreak).join('\n'), text)
    .replace(HIDES, (run) => bracketed(labelOf(run)))
    .toWellFormed();
}

/** Where the part of a text ends that is shown at first: at most so long, and with a bounded number of such words. */
export function endOfFirstProse(text: string, most: number): number {
  const end = endOfFirstPart(text, most);
  let left = MOST_HIDDEN;
  for (const { index } of text.slice(0, end).matchAll(HIDES)) if (--left < 0) return index;
  return end;
}
