import { truncateText } from '@interlude/protocol/text';
import { decodeNamedCharacterReference } from 'decode-named-character-reference';
import { decodeNumericCharacterReference } from 'micromark-util-decode-numeric-character-reference';

/** One line is made of this much; nobody sees what is beyond. */
const LOOKED_AT = 1_000;

/** No one writes marks within so many others: then they all go at once, so that it takes no longer. */
const DEEPEST = 8;
const ANY_MARK = /[*_`~#|<>[\]\\&]/g;

/** Lines that are nothing but marks: fences, rules, what is under a title or a table's head, where links lead. */
const MARKS_ONLY =
  /^[ \t]*(?:(?:`{3,}|~{3,})[^`\n]*|([-*_=])(?:[ \t]*\1){2,}[ \t]*|=+|(?=[^\n]*\|)[ \t|:-]*-[ \t|:-]*|\[[^[\]\n]+\]:[ \t]*\S+)$/gm;
/** Titles, quotes, list items. The numbers of a list stay: they say something. */
const LINE_BEGINNING = /^(?:[ \t]*(?:#{1,6}(?=[ \t]|$)|>|[-*+•](?=[ \t])))+[ \t]*/gm;
const TABLE_ROW = /^[ \t]*\|.*/gm;
const CHECKBOX = /^\[([ xX])\](?= )/gm;

const LINK = /(!?)\[([^[\]]*)\](?:\((?:[^()]|\([^()]*\))*\)|\[[^[\]]*\])/g;
/** A link whose end the text was cut before. */
const CUT_LINK = /!?\[([^[\]]*)\]\([^()\s]*$/;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]*)>/gi;
/** Not stars that multiply, or stand for names of files, as in what was code. */
const EMPHASIS = /(?<![\p{L}\p{N}*/\\])(\*{1,3})(?![\s.,;:*)\]}])([^*]+)(?<![\s/(\\])\1(?![\p{N}*/])/gu;
const CUT_STRONG = /(?<=^|\s)\*\*(?=[^\s*/.,;:)\]}](?:(?!\*\*).)*$)/su;
/** Of several words: what has underscores around a single one is a name. */
const UNDERLINED = /(?<![\p{L}\p{N}_])(_{1,2})(?!\s)([^_]+)(?<!\s)\1(?![\p{L}\p{N}_])/gu;
const STRUCK = /~~([^~]+)~~/g;
const ESCAPED = /\\([*_`#|~<>[\]])/g;

/**
 * What a text of markdown says, in words on one line: no marks, no addresses of links. For previews; an agent's control
 * and direction signs are still in it, so that it is shown by `Words`.
 *
 * What comes out of it once, it leaves as it is. Work: a bounded beginning of the text is looked at.
 */
export function toPlainText(markdown: string): string {
  const isCut = markdown.length > LOOKED_AT;
  let words = isCut ? truncateText(markdown, LOOKED_AT) : markdown;
  // Marks stand within marks. Each round that changes anything leaves less.
  for (let before = '', round = 1; before !== words; round++) {
    before = words;
    words = withoutMarks(round === DEEPEST ? words.replace(ANY_MARK, '') : words);
  }
  return isCut ? `${words}…` : words;
}

function withoutMarks(text: string): string {
  return decodeEntities(text.replace(/\r\n/g, '\n').replace(/&nbsp;|<br *\/?>/gi, ' '))
    .replace(MARKS_ONLY, '')
    .replace(LINE_BEGINNING, '')
    .replace(CHECKBOX, (_, mark) => (mark === ' ' ? '☐' : '☑'))
    .replace(TABLE_ROW, (row) => row.replace(/(?<!\\)\|/g, ' '))
    .replace(LINK, (_, image, words) => (image !== '' && words === '' ? 'image' : words))
    .replace(CUT_LINK, '$1')
    .replace(AUTOLINK, '$1')
    .replace(/`/g, '')
    .replace(EMPHASIS, '$2')
    .replace(CUT_STRONG, '')
    .replace(UNDERLINED, (whole, _, words: string) => (/\s/.test(words) ? words : whole))
    .replace(STRUCK, '$1')
    .replace(ESCAPED, '$1')
    .replace(/[ \t\n\u00a0\u202f]+/g, ' ')
    .replace(/^ | $/g, '');
}

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
