import { bracketed, INVISIBLE, labelOf } from './verbatim';

/**
 * What hides text, or acts on what stands around it. Line breaks and tabs stay, and joiners and selectors, which words
 * and emoji are made of.
 */
const HIDES = new RegExp(`((?![\\t\\n\\u200c\\u200d\\p{Variation_Selector}])[${INVISIBLE}])\\1*`, 'gu');

/** A lone return of the carriage is one, too: what stands before it stays in sight. */
const LINE_BREAK = /\r\n?|[\u2028\u2029]/g;

/**
 * What people and agents say to each other, to be read: all of it as it was written, with words for what could not be
 * seen (`⟨ESC⟩`), so that nothing is hidden by it. Colours are no exception: what looks like one has room for words.
 */
export function proseText(text: string): string {
  return text
    .replace(LINE_BREAK, '\n')
    .replace(HIDES, (run) => bracketed(labelOf(run)))
    .toWellFormed();
}
