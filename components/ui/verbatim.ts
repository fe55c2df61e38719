import { truncateText, withoutQuotes } from '@interlude/protocol/text';
import { codeName, lookalikes } from './lookalikes';

/**
 * Text split for verbatim display. Characters that are invisible or affect the text around them are pieces of their own,
 * which are shown as labels such as `⟨RLO⟩`. Lookalike letters are followed by a label of their script. The pieces'
 * texts concatenate to the original, for every string.
 *
 * Failure: none. Lone surrogates, controls and direction marks are labelled, too.
 */
export type VerbatimPiece =
  /** Shown as is, from left to right regardless of context. */
  | { kind: 'text'; text: string }
  /** Right-to-left letters, isolated so that they reorder nothing else. */
  | { kind: 'rtl'; text: string }
  | { kind: 'tab'; text: string }
  /** A run of one character with its label: `RLO`, `U+E0041`, `LF ×12`. */
  | { kind: 'sign'; text: string; label: string }
  /** Script of the lookalike letters before it, such as `Cyrillic`. Has no text of its own. */
  | { kind: 'origin'; text: ''; label: string };

/**
 * `lines` keeps line breaks and tabs. `name` labels them. `tool` is a `name` in which every word that reads as Latin is
 * checked for lookalikes. `words` is for reading: it keeps spaces, joiners and emoji, runs text in the direction of its
 * script, and checks for no lookalikes.
 */
export type VerbatimLayout = 'lines' | 'name' | 'tool' | 'words';

/** Longer runs of spaces or tabs become a label, because they would push the text after them out of sight. */
const MAX_BLANKS = 32;
/** Longer runs of line breaks become a label. */
const MAX_BREAKS = 4;
/** Further marks on a letter become labels. No script needs more, and they would cover the lines around them. */
const MAX_MARKS = 4;

const NAMED: readonly (readonly [first: number, names: string])[] = [
  [0x00, 'NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC'],
  [0x1c, 'FS GS RS US SP'],
  [0x7f, 'DEL'],
  [0x84, 'IND NEL'],
  [0x8d, 'RI'],
  [0x90, 'DCS'],
  [0x98, 'SOS'],
  [0x9b, 'CSI ST OSC PM APC'],
  [0xa0, 'NBSP'],
  [0xad, 'SHY'],
  [0x034f, 'CGJ'],
  [0x061c, 'ALM'],
  [0x200b, 'ZWSP ZWNJ ZWJ LRM RLM'],
  [0x2028, 'LSEP PSEP LRE RLE PDF LRO RLO NNBSP'],
  [0x2060, 'WJ'],
  [0x2066, 'LRI RLI FSI PDI'],
  [0x3000, 'IDSP'],
  [0xfeff, 'BOM'],
];

const NAMES: ReadonlyMap<number, string> = new Map(
  NAMED.flatMap(([first, names]) => names.split(' ').map((name, index) => [first + index, name] as const)),
);
const CODES: ReadonlyMap<string, number> = new Map([...NAMES].map(([code, name]) => [name, code]));

/**
 * Characters without a glyph in any font, as the inside of a character class: controls, direction marks, zero-width
 * characters, tags, fillers, variation selectors and blank letters.
 *
 * Uses only properties that are stable across Unicode versions, because the server and the browser must agree.
 */
export const INVISIBLE =
  '\\p{Cc}\\p{Default_Ignorable_Code_Point}\\u2800\\ufff9-\\ufffb\\u{13441}\\u{13442}\\u{16fe4}\\u{1d159}';

/** `INVISIBLE`, other formats, private-use characters, noncharacters, lone surrogates, and spaces other than ASCII. */
const UNSEEN =
  `[${INVISIBLE}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}\\p{Noncharacter_Code_Point}` +
  '\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ufffc]';

/** The part of `UNSEEN` that words and emoji need, and spaces of other scripts. */
const IN_WORDS = '[\\u200c\\u200d\\p{Variation_Selector}\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]';

/** Right-to-left blocks, including Arabic digits. */
export const RTL = '[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufeff\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]';
/** A combining mark without a base letter, or beyond `MAX_MARKS`. */
const ODD_MARK = `(?<=^|[\\s\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}]|\\p{M}{${MAX_MARKS}})\\p{M}`;

/** Alternatives in order of precedence, each matching one run. */
const PIECES = {
  lines: new RegExp(
    `(?<breaks>\\n{${MAX_BREAKS + 1},}|\\n{2,}$|^\\n+$)|\\n+` +
      `|(?<blanks> {${MAX_BLANKS + 1},}| +(?=\\n|$)|\\t{${MAX_BLANKS + 1},})` +
      `|(?<tabs>\\t+)|(?<unseen>(?:${UNSEEN}))\\k<unseen>*|(?<mark>${ODD_MARK})\\k<mark>*` +
      `|(?<rtl>(?:(?!${UNSEEN}|${ODD_MARK})${RTL})+)`,
    'gu',
  ),
  name: new RegExp(
    `(?<blanks>^ +| {2,}| +$)|(?<unseen>(?:${UNSEEN}))\\k<unseen>*|(?<mark>${ODD_MARK})\\k<mark>*` +
      `|(?<rtl>(?:(?!${UNSEEN}|${ODD_MARK})${RTL})+)`,
    'gu',
  ),
  words: new RegExp(`(?<unseen>(?!${IN_WORDS})${UNSEEN})\\k<unseen>*|(?<mark>${ODD_MARK})\\k<mark>*`, 'gu'),
};

/** True if a name needs no labels and no isolation: printable ASCII without leading, trailing or double spaces. */
export function isPlainName(text: string): boolean {
  return /^[ -~]*$/.test(text) && !/^ | {2}| $/.test(text);
}

/**
 * Splits a text into pieces that concatenate to it.
 *
 * @param max stops after about this many pieces
 */
export function verbatimPieces(text: string, layout: VerbatimLayout, max = Number.POSITIVE_INFINITY): VerbatimPiece[] {
  if (layout !== 'lines' && isPlainName(text)) return text === '' ? [] : [{ kind: 'text', text }];
  const pieces: VerbatimPiece[] = [];
  const origins = layout === 'words' ? [] : lookalikes(text, characterOf, layout === 'tool');
  let nextOrigin = 0;
  let from = 0;
  /** Adds text up to `to`, with an origin after each lookalike run. */
  const add = (kind: 'text' | 'rtl', to: number) => {
    for (let origin = origins[nextOrigin]; origin !== undefined && origin.end <= to; origin = origins[++nextOrigin]) {
      if (origin.end > from) pieces.push({ kind, text: text.slice(from, origin.end) });
      pieces.push({ kind: 'origin', text: '', label: origin.label });
      from = origin.end;
      if (pieces.length > max) return;
    }
    if (to > from) pieces.push({ kind, text: text.slice(from, to) });
    from = to;
  };
  for (const match of text.matchAll(PIECES[layout === 'tool' ? 'name' : layout])) {
    const { breaks, blanks, tabs, unseen, mark, rtl } = match.groups ?? {};
    const run = breaks ?? blanks ?? unseen ?? mark;
    if (run === undefined && tabs === undefined && rtl === undefined) continue;
    add('text', match.index);
    if (pieces.length > max) return pieces;
    const end = match.index + match[0].length;
    if (rtl !== undefined) add('rtl', end);
    else if (tabs !== undefined) pieces.push({ kind: 'tab', text: tabs });
    else pieces.push({ kind: 'sign', text: match[0], label: labelOf(match[0]) });
    from = end;
    if (pieces.length > max) return pieces;
  }
  add('text', text.length);
  return pieces;
}

/**
 * A name as plain text, for page titles, tooltips and accessible names. Invisible characters become labels such as
 * `⟨RLO⟩`. Idempotent.
 */
export function nameText(text: string, max = 1_000): string {
  const isLong = text.length > max;
  // A space at the cut would become a label.
  const pieces = verbatimPieces(isLong ? truncateText(text, max).trimEnd() : text, 'name');
  const shown = pieces.map((piece) => ('label' in piece ? bracketed(piece.label) : piece.text)).join('');
  return isLong ? `${shown}…` : shown;
}

/**
 * Quotes the words of an agent, a file or a person for use in our own text: control names, sentences and titles. Quotes
 * inside are replaced, so a session called `x”. Sign out` can't pass for interface text.
 *
 * Not needed for words on their own, as in list rows, messages and log lines, unless a control is named after them.
 */
export function inQuotes(text: string): string {
  return `“${withoutQuotes(text)}”`;
}

/** `inQuotes` as plain text (see `nameText`). */
export function quoted(text: string, max?: number): string {
  return inQuotes(nameText(text, max));
}

export function bracketed(label: string): string {
  return `⟨${label}⟩`;
}

/** The label of a run of one character. */
export function labelOf(run: string): string {
  const code = run.codePointAt(0) as number;
  const count = run.length / (code > 0xffff ? 2 : 1);
  const name = NAMES.get(code) ?? codeName(code);
  return count === 1 ? name : `${name} ×${count}`;
}

/** Inverse of `labelOf`; null for text that is not a label. */
function characterOf(label: string): string | null {
  const [name = ''] = label.split(' ×');
  const code =
    CODES.get(name) ?? (/^U\+(?:10|[\dA-F])?[\dA-F]{4}$/.test(name) ? Number.parseInt(name.slice(2), 16) : null);
  return code === null ? null : String.fromCodePoint(code);
}
