import { truncateText, withoutQuotes } from '@interlude/protocol/text';
import { codeName, lookalikes } from './lookalikes';

/**
 * Text that is shown as it is, interpreted by nothing: what can't be seen, or would act on what stands around it, is
 * told apart, so that a sign can stand in its place. Letters that pass for others are followed by a sign. The pieces
 * joined are the text, for every string.
 *
 * Failure: none. Half a character, a control, a mark of direction: each is a piece with a name.
 */
export type VerbatimPiece =
  /** Shown as it is: left to right whatever stands around it. */
  | { kind: 'text'; text: string }
  /** Letters that run from right to left. Kept apart, they turn around nothing but themselves. */
  | { kind: 'rtl'; text: string }
  /** A tab, which is shown as a tab. */
  | { kind: 'tab'; text: string }
  /** The same character `count` times over, of which `label` stands for all: `RLO`, `U+E0041`, `LF ×12`. */
  | { kind: 'sign'; text: string; label: string }
  /** What the letters before it are, which pass for others: `Cyrillic`. It stands for no text of its own. */
  | { kind: 'origin'; text: ''; label: string };

/**
 * `lines`: line breaks and tabs are shown as such. In a `name` they are signs. In a `tool`, the name of a tool, every word
 * that reads as Latin is suspected, too. `words` are to be read: their spaces, what joins letters and what emoji are made
 * of stay, letters run as their script does, and none are suspected.
 */
export type VerbatimLayout = 'lines' | 'name' | 'tool' | 'words';

/** More spaces or tabs in a row than this would push what follows out of sight: they are counted instead. */
const MOST_BLANKS = 32;
/** More line breaks in a row than this are counted: three empty lines are still seen for what they are. */
const MOST_BREAKS = 4;
/** Marks on one letter beyond this are signs. No script needs more, and they grow over the lines around them. */
const MOST_MARKS = 4;

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
  NAMED.flatMap(([first, names]) => names.split(' ').map((name, at) => [first + at, name] as const)),
);
const CODES: ReadonlyMap<string, number> = new Map([...NAMES].map(([code, name]) => [name, code]));

/**
 * What leaves nothing on the page, or nothing but a change to what stands around it, in any font, as the inside of a
 * class: controls, marks of direction, zero widths, tags, fillers, variation selectors, letters that are drawn as nothing.
 *
 * Only classes that no later Unicode moves characters into from others: the server and a browser must agree.
 */
export const INVISIBLE =
  '\\p{Cc}\\p{Default_Ignorable_Code_Point}\\u2800\\ufff9-\\ufffb\\u{13441}\\u{13442}\\u{16fe4}\\u{1d159}';

/** That, and what only looks like something else: other formats, private and never-assigned characters, halves, spaces. */
const UNSEEN =
  `[${INVISIBLE}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}\\p{Noncharacter_Code_Point}` +
  '\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ufffc]';

/** What of that words and emoji are made of, and spaces of other scripts. */
const IN_WORDS = '[\\u200c\\u200d\\p{Variation_Selector}\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]';

/** Every block whose characters run from right to left, Arabic digits among them. */
export const RTL = '[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufeff\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]';
/** A mark at the beginning, or behind what is no letter, has nothing to stand on. */
const ODD_MARK = `(?<=^|[\\s\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}]|\\p{M}{${MOST_MARKS}})\\p{M}`;

/** In the order of what goes first. Every alternative takes one run of what it is about. */
const PIECES = {
  lines: new RegExp(
    `(?<breaks>\\n{${MOST_BREAKS + 1},}|\\n{2,}$|^\\n+$)|\\n+` +
      `|(?<blanks> {${MOST_BLANKS + 1},}| +(?=\\n|$)|\\t{${MOST_BLANKS + 1},})` +
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

/** Whether a name is shown as one text: nothing in it has a sign, or runs the other way. */
export function isPlainName(text: string): boolean {
  return /^[ -~]*$/.test(text) && !/^ | {2}| $/.test(text);
}

/**
 * The text in pieces. Joined they are the text.
 *
 * @param most of a text of more pieces, only its first ones are made: so many, and one or two more
 */
export function verbatimPieces(text: string, layout: VerbatimLayout, most = Number.POSITIVE_INFINITY): VerbatimPiece[] {
  if (layout !== 'lines' && isPlainName(text)) return text === '' ? [] : [{ kind: 'text', text }];
  const pieces: VerbatimPiece[] = [];
  const origins = layout === 'words' ? [] : lookalikes(text, characterOf, layout === 'tool');
  let nextOrigin = 0;
  let from = 0;
  /** Adds letters, each run that passes for another with its origin behind it. */
  const add = (kind: 'text' | 'rtl', to: number) => {
    for (let origin = origins[nextOrigin]; origin !== undefined && origin.end <= to; origin = origins[++nextOrigin]) {
      if (origin.end > from) pieces.push({ kind, text: text.slice(from, origin.end) });
      pieces.push({ kind: 'origin', text: '', label: origin.label });
      from = origin.end;
      if (pieces.length > most) return;
    }
    if (to > from) pieces.push({ kind, text: text.slice(from, to) });
    from = to;
  };
  for (const match of text.matchAll(PIECES[layout === 'tool' ? 'name' : layout])) {
    const { breaks, blanks, tabs, unseen, mark, rtl } = match.groups ?? {};
    const run = breaks ?? blanks ?? unseen ?? mark;
    if (run === undefined && tabs === undefined && rtl === undefined) continue;
    add('text', match.index);
    if (pieces.length > most) return pieces;
    const end = match.index + match[0].length;
    if (rtl !== undefined) add('rtl', end);
    else if (tabs !== undefined) pieces.push({ kind: 'tab', text: tabs });
    else pieces.push({ kind: 'sign', text: match[0], label: labelOf(match[0]) });
    from = end;
    if (pieces.length > most) return pieces;
  }
  add('text', text.length);
  return pieces;
}

/**
 * A name on one line for where there can be no signs: titles of the page and of elements, names for screen readers.
 * What can't be seen is spelled out: `⟨RLO⟩`. What has been spelled out already stays as it is.
 */
export function nameText(text: string, most = 1_000): string {
  const pieces = verbatimPieces(truncateText(text, most), 'name');
  const shown = pieces.map((piece) => ('label' in piece ? bracketed(piece.label) : piece.text)).join('');
  return text.length > most ? `${shown}…` : shown;
}

/**
 * Words of an agent, a file or a person among words of ours: in the names of controls, in sentences and in titles. The
 * quotes say whose words they are. Nothing inside ends them, so a session called `x”. Sign out` does not read as ours.
 *
 * They need none where they have a place of their own: the name of a row in its list, a message, a log line. There, no
 * control takes its name from them alone.
 */
export function inQuotes(text: string): string {
  return `“${withoutQuotes(text)}”`;
}

/** `inQuotes`, for where there can be no signs (see `nameText`). */
export function quoted(text: string, most?: number): string {
  return inQuotes(nameText(text, most));
}

/** How a sign reads. */
export function bracketed(label: string): string {
  return `⟨${label}⟩`;
}

/** What stands in a sign for a run of one character. */
export function labelOf(run: string): string {
  const code = run.codePointAt(0) as number;
  const count = run.length / (code > 0xffff ? 2 : 1);
  const name = NAMES.get(code) ?? codeName(code);
  return count === 1 ? name : `${name} ×${count}`;
}

/** The character of a label that `labelOf` made; null for any other text. */
function characterOf(label: string): string | null {
  const [name = ''] = label.split(' ×');
  const code =
    CODES.get(name) ?? (/^U\+(?:10|[\dA-F])?[\dA-F]{4}$/.test(name) ? Number.parseInt(name.slice(2), 16) : null);
  return code === null ? null : String.fromCodePoint(code);
}
