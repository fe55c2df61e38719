import { truncateText } from '@interlude/protocol/text';
import { decodeNamedCharacterReference } from 'decode-named-character-reference';
import { decodeNumericCharacterReference } from 'micromark-util-decode-numeric-character-reference';

/** Maximum number of characters read: a preview is one line. */
const MAX_CHARACTERS = 1_000;

/** Maximum number of rounds for nested marks. The last round removes all marks at once, which bounds the work. */
const MAX_ROUNDS = 8;
const ANY_MARK = /[*_`~#|<>[\]\\&]/g;

/** Lines of marks only: fences, rules, underlines of headings and table headers, link definitions. */
const MARKS_ONLY =
  /^[ \t]*(?:(?:`{3,}|~{3,})[^`\n]*|([-*_=])(?:[ \t]*\1){2,}[ \t]*|=+|(?=[^\n]*\|)[ \t|:-]*-[ \t|:-]*|\[[^[\]\n]+\]:[ \t]*\S+)$/gm;
/** Needs no empty line after it. */
const HEADING = /^ *#{1,6} .*/gm;
/** The gap after a block without closing punctuation. */
const BLOCK_END = /(?<=[^\s.!?:;,…]) *\n\n\s*(?=\S)/g;
/** Marks of headings, quotes and list items. List numbers stay, because they carry meaning. */
const LINE_BEGINNING = /^(?:[ \t]*(?:#{1,6}(?=[ \t]|$)|>|[-*+•](?=[ \t])))+[ \t]*/gm;
const TABLE_ROW = /^[ \t]*\|.*/gm;
const CHECKBOX = /^\[([ xX])\](?= )/gm;

const LINK = /(!?)\[([^[\]]*)\](?:\((?:[^()]|\([^()]*\))*\)|\[[^[\]]*\])/g;
/** A link truncated within its target. */
const CUT_LINK = /!?\[([^[\]]*)\]\([^()\s]*$/;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]*)>/gi;
/** The lookarounds keep multiplication and globs from counting as emphasis. */
const EMPHASIS = /(?<![\p{L}\p{N}*/\\])(\*{1,3})(?![\s.,;:*)\]}])([^*]+)(?<![\s/(\\])\1(?![\p{N}*/])/gu;
const CUT_STRONG = /(?<=^|\s)\*\*(?=[^\s*/.,;:)\]}](?:(?!\*\*).)*$)/su;
/** Only around several words: a single word in underscores is an identifier. */
const UNDERLINED = /(?<![\p{L}\p{N}_])(_{1,2})(?!\s)([^_]+)(?<!\s)\1(?![\p{L}\p{N}_])/gu;
const STRUCK = /~~([^~]+)~~/g;
const ESCAPED = /\\([*_`#|~<>[\]])/g;

/**
 * Markdown as plain text on one line, without marks and link targets, for previews. Control and direction characters
 * stay, so render the result with `Words`.
 *
 * Idempotent. Reads a bounded beginning of the text.
 */
export function toPlainText(markdown: string): string {
  const isCut = markdown.length > MAX_CHARACTERS;
  let words = isCut ? truncateText(markdown, MAX_CHARACTERS) : markdown;
  // Marks nest, so each round unwraps one level.
  for (let before = '', round = 1; before !== words; round++) {
    before = words;
    words = withoutMarks(round === MAX_ROUNDS ? words.replace(ANY_MARK, '') : words);
  }
  // Separators can make the text longer than the maximum.
  if (words.length > MAX_CHARACTERS) return toPlainText(words);
  return isCut ? `${words}…` : words;
}

function withoutMarks(text: string): string {
  return decodeEntities(text.replace(/\r\n/g, '\n').replace(/&nbsp;|<br *\/?>/gi, ' '))
    .replace(MARKS_ONLY, '')
    .replace(HEADING, '$&\n')
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
    .replace(BLOCK_END, ' · ')
    .replace(/[ \t\n\u00a0\u202f]+/g, ' ')
    .replace(/^ | $/g, '');
}

/** The longest name, `CounterClockwiseContourIntegral`, has 31 letters. */
const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([\da-z]{2,31}));/gi;

/**
 * Decodes HTML entities in Markdown text. React renders the result as text, so it can't become markup. In the browser
 * the DOM resolves entity names; only the server's bundle contains a table.
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
