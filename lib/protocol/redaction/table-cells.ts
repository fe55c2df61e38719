import { type NamedSecret, PASSWORD_LABELS, secretName, TOKEN_LABELS } from './secret-names';
import { BEGUN, type SecretSpan, spanOf } from './secret-span';
import { isSecretValue, isStandIn, isTerm, looksDrawn } from './secret-values';

/** A column that holds secrets, by its name. */
export interface NamedColumn {
  name: string;
  named: NamedSecret;
}

/** The secret columns of a table, by their index. */
export type Columns = ReadonlyMap<number, NamedColumn>;

export interface Cell {
  text: string;
  /** Where the text begins, in its line or text. */
  at: number;
}

/** A remark in a column's name: `(prod)` in `Password (prod)`. */
export const IN_PARENTHESES = /\s{0,4}\([^()]{0,60}\)/g;
/** Most cells of a row. */
export const MOST_CELLS = 512;
/** The field of an object or text that has the names of columns. */
export const COLUMN_KEY = '(?:(?:column|col|field|header)(?:s|_?names?|_?labels?)?|names)';

/** The secret columns that a list of names has; null if it has none. */
export function secretColumns(names: readonly string[]): Columns | null {
  const columns = new Map<number, NamedColumn>();
  for (const [index, name] of names.slice(0, MOST_CELLS).entries()) {
    for (const plain of plainName(name).split(/\s?\/\s?/)) {
      const named = secretName(plain) ?? (isLabel(plain.toLowerCase()) ? LABELLED : null);
      if (named?.strength === 'strong') columns.set(index, { name: plain, named });
    }
  }
  return columns.size === 0 ? null : columns;
}

const LABELLED: NamedSecret = { kind: 'password', strength: 'strong' };
const LABELS = [...PASSWORD_LABELS, ...TOKEN_LABELS];

/** A name without what stands around it: `🔑 Password for app (temp)?`. */
export function plainName(name: string): string {
  return name
    .replaceAll(IN_PARENTHESES, ' ')
    .replace(/\s(?:for|of|in|on)\s.*$/i, '')
    .replaceAll(/[^\p{L}\p{M}\p{N}\s_./-]+/gu, ' ')
    .trim();
}

function isLabel(name: string): boolean {
  const isAt = (label: string) => name.endsWith(/^[a-zа-я]/.test(label) ? ` ${label}` : label);
  return LABELS.some((label) => name === label || name.startsWith(`${label} `) || isAt(label));
}

/** Tags that stand between the words of a cell, besides those of the table. */
const CELL_TAG = '</?(?:br|code|b|i|em|strong|kbd|span|button|a|p|div|small|sup|sub)(?![^\\s/>])[^<>]{0,4096}>';
const CELL_WORDS = new RegExp(`${CELL_TAG}|(?:(?!${CELL_TAG})\\S)+`, 'gi');
const QUOTES = /^(["'`*_]{0,3})(.*?)["'`*_]{0,3}$/;
const BRACKETS = /^(["'`*_([{]{0,4})(.*?)["'`*_)\]},;:]{0,4}$/;

export function wordsIn({ text, at }: Cell, pattern = CELL_WORDS): Cell[] {
  return [...text.matchAll(pattern)].map(({ 0: word, index }) => ({ text: word, at: at + index }));
}

function bare({ text, at }: Cell, around: RegExp): Cell {
  const [, before = '', value = ''] = around.exec(text) ?? [];
  return { text: value, at: at + before.length };
}

export function drawnWords(words: readonly Cell[], { named }: NamedColumn): SecretSpan[] {
  return words
    .map((word) => bare(word, BRACKETS))
    .filter(({ text }) => looksDrawn(text) && !isPlainCell(text, named))
    .map(({ text, at }) => spanOf(at, text, named.kind));
}

/**
 * The secrets of a cell: its only word, or of several words those that look drawn. A tag, brackets, a comma or a sign by
 * itself divides a cell like another cell would.
 *
 * @param mayGoOn whether the cell may go on at the end of its line
 * @param pattern the words and tags of the cell
 */
export function cellSecrets(
  cell: Cell,
  column: NamedColumn,
  mayGoOn: boolean,
  end: number,
  pattern = CELL_WORDS,
): SecretSpan[] {
  const words = wordsIn(cell, pattern);
  const plain = words.filter(({ text }) => !/^<.*>?$/.test(text));
  const [first] = plain;
  if (first === undefined) return [];
  const only = bare(first, QUOTES);
  const spans: SecretSpan[] = [];
  if (plain.length > 1) spans.push(...partSecrets(words, column));
  else if (isCellSecret(only.text, column)) spans.push(spanOf(only.at, only.text, column.named.kind));
  if (mayGoOn && only.text !== '' && !(plain.length === 1 && isStandIn(only.text)))
    spans.push({ start: only.at, end, kind: BEGUN });
  return spans;
}

function partSecrets(words: readonly Cell[], column: NamedColumn): SecretSpan[] {
  const spans: SecretSpan[] = [];
  let part: Cell[] = [];
  const endPart = () => {
    const [only] = part;
    const { text, at } = only === undefined ? { text: '', at: 0 } : bare(only, BRACKETS);
    if (part.length > 1) spans.push(...drawnWords(part, column));
    else if (/[A-Za-z]/.test(text) && /[^A-Za-z]/.test(text) && isCellSecret(text, column))
      spans.push(spanOf(at, text, column.named.kind));
    part = [];
  };
  for (const word of words) {
    const divides = /^(?:<.*|[/|·•+&,;:–—=-]+)$/.test(word.text);
    if (divides || /^["'`*_]{0,3}\(/.test(word.text)) endPart();
    if (!divides) part.push(word);
    if (/[,;)]["'`*_]{0,3}$/.test(word.text)) endPart();
  }
  endPart();
  return spans;
}

/** True for a cell that is no word, no sentence and no placeholder. */
export function isCellSecret(value: string, { name, named }: NamedColumn): boolean {
  if (/\s|^\d+\/\d+$/.test(value) || isPlainCell(value, named)) return false;
  return isSecretValue(value, named, name, { isQuoted: false, isProse: true, next: ' ' });
}

const UNIT = String.raw`(?:(?:%|‰|°[CF]|[kKMGTP]i?[Bb]?(?:ps)?|B|[numµ]?s|min|h|d|[kMG]?Wh?|[mk]?[VA]|[kMG]?Hz|px|pt|r?em|[cmk]?m|[mk]?g|x|st|nd|rd|th|USD|EUR|tok(?:ens?)?)(?:\/\w{1,8})?)`;
const PARTED = String.raw`(?:\d{1,3}(?:[,.]\d{3}){1,6}(?:[.,]\d{1,12})?|\d{1,12}[.,]\d{1,12})`;
const NUMBER = String.raw`(?:${PARTED}|\d{1,12})`;
/** A number with separators, a currency or a unit: `1,234`, `$0.02`, `98.5%`. One of digits alone may be a secret. */
const QUANTITY = new RegExp(String.raw`^[~≈<>≤≥±+-]{0,2}(?:[$€£¥]${NUMBER}${UNIT}?|${PARTED}${UNIT}?|\d{1,9}${UNIT})$`);
/** A name of a style, of a setting, of a constant: `--color-primary`, `color.primary.500`, `STRIPE_KEY_V2`. */
const STYLE_PART = String.raw`(?:[a-z]{2,22}(?:[A-Z][a-z]{1,20}){0,3}|v?\d{1,4}|\d{1,3}[a-z]{1,2})`;
const DOTTED = new RegExp(`^(?=.*[a-z]{3})(?:--)?${STYLE_PART}(?:[-._/]${STYLE_PART})+$`);
const NUMBERED = /^(?=.*[A-Z]{3})[A-Z]{2,22}(?:_(?:[A-Z]{2,22}|V?\d{1,3}))+$/;
const HASHED = /^(?:[bs]crypt|yescrypt|argon2\w{0,2}|pbkdf2|sha-?\d{1,3}|md5)(?:[-_:][a-z\d]{1,6}){0,2}$/i;

/** True for a number, a name or an algorithm, which tables list in columns that are called like a secret. */
function isPlainCell(value: string, { kind }: NamedSecret): boolean {
  if (QUANTITY.test(value) || HASHED.test(value) || isTerm(value)) return true;
  if (NUMBERED.test(value) && (kind !== 'password' || /PASS|PWD|SECRET|TOKEN|KEY/.test(value))) return true;
  return kind !== 'password' && DOTTED.test(value) && (kind !== 'secret' || value.split(/[-._/]/).length > 2);
}
