import { type NamedSecret, PASSWORD_LABELS, secretName, TOKEN_LABELS } from './secret-names';
import {
  isBenign,
  isSecretValue,
  isTerm,
  looksGenerated,
  PENDING,
  pendingSpan,
  type SecretSpan,
  spanOf,
} from './secret-values';

/** Cell separator. `|` covers all vertical lines; two blanks mean aligned columns. */
type Separator = '|' | '||' | '!!' | '&' | '\t' | ';' | ',' | '  ';

/** A table being read, with its secret columns. */
export interface Table {
  separator: Separator;
  count: number;
  columns: Columns;
  /** Ranges of aligned columns; null if separators divide the cells. */
  places: readonly Place[] | null;
  /** The unconfirmed header line; null once a row has confirmed the table. */
  header: string | null;
  /** True if the first column has no name. Each row then starts with a number or name. */
  isIndexed: boolean;
  /** True if a vertical line precedes the first column. */
  isEdged: boolean;
  /** Name and value columns, if each row is a pair: `DB_PASSWORD | …`. */
  pair: readonly [name: number, value: number] | null;
  /** Consecutive lines that are not rows. */
  odd: number;
  /** The last two lines. */
  last: readonly string[];
}

interface Place {
  from: number;
  to: number;
}

/** Matches every line that may name a column of secrets or values. */
export const TABLE_HINT = new RegExp(
  `pass|pwd|pw|secret|token|key|cred|value|${[...PASSWORD_LABELS, ...TOKEN_LABELS].join('|')}`,
  'i',
);
/** A plausible column name. Commas and blanks also separate the words of sentences. */
const HEADER_CELL = /^(?:["'`*]{0,3}(?:\p{L}[\p{L}\p{M}\w ./-]{0,40}[:?*]?|#|№)["'`*]{0,3})?$/u;
const MAX_COLUMN_NAME = 60;
/** Vertical lines. */
const PIPE = /[|│┃║┆┊╎]/;
const RULE = /^[\s|+:=*\u2500-\u257f-]+$/;
/** Longest table line in UTF-16 code units; columns may be padded to a long value. */
export const MAX_TABLE_LINE = 16 * 1_024;
/** Maximum number of consecutive lines that are not rows: a value may contain line breaks. */
const MAX_ODD_LINES = 2;
/** A comment between rows. */
const COMMENT = /^\s*(?:#|\/\/|--)/;
/** Column names of a table of name–value pairs. */
const PAIR_NAME = /^(?:name|key|variable|var|parameter|param|setting|property|option|env)$/i;
const PAIR_VALUE = /^(?:value|val)$/i;

/** Parses a line as a table header; null if it is not one. */
export function tableHeader(line: string): Table | null {
  if (line.length > MAX_TABLE_LINE) return null;
  const separator = separatorOf(line);
  const cells = cellsOf(line, separator);
  const names = cells.map(({ text }) => text);
  if (names.length === 0 || names.some((name) => name.length > MAX_COLUMN_NAME)) return null;
  const columns = secretColumns(names);
  const isPlain = names.every((name) => HEADER_CELL.test(name.replaceAll(IN_PARENTHESES, '')));
  const table = {
    separator,
    count: names.length,
    columns: columns ?? NO_COLUMNS,
    places: null,
    isIndexed: names[0] === '',
    isEdged: PIPE.test(line.slice(0, cells[0]?.at)),
    pair: pairIn(names),
    odd: 0,
    last: [],
  };
  const isKnown = columns !== null || table.pair !== null;
  if (isKnown && names.length > 1 && isList(line, separator, isPlain)) return { ...table, header: null };
  if (/[,;]/.test(separator) || (separator === '  ' && !isPlain)) return null;
  return { ...table, header: line };
}

const NO_COLUMNS: Columns = new Map();

function pairIn(names: readonly string[]): readonly [number, number] | null {
  const [name, value] = [PAIR_NAME, PAIR_VALUE].map((role) => names.findIndex((cell) => role.test(plainName(cell))));
  return name === undefined || value === undefined || name < 0 || value < 0 ? null : [name, value];
}

/** True for a header that cannot be a sentence. */
function isList(line: string, separator: Separator, isPlain: boolean): boolean {
  if (separator === '||' || separator === '&') return true;
  if (separator === '|') return /^[\w-]+(?:\|[\w-]+)+$/.test(line);
  return isPlain && (separator === '  ' ? !/[a-z]/.test(line) : separator !== '!!' && /^\S|^[\t,;]\S/.test(line));
}

function separatorOf(line: string): Separator {
  if (/^\s*\|\|.*\|\|\s*$/.test(line)) return '||';
  if (/^\s*!.*!!/.test(line)) return '!!';
  if (PIPE.test(line)) return '|';
  if (line.includes(' & ') && /\\\s*(?:\\hline\s*)?$/.test(line)) return '&';
  if (line.startsWith('\t') || line.trimStart().includes('\t')) return '\t';
  if (line.includes(';')) return ';';
  return /,(?! )/.test(line) || /^[a-z_]+(?:, [a-z_]+)+$/i.test(line) ? ',' : '  ';
}

/** True for a line between a header and its rows. */
function isRule(line: string): boolean {
  if (/^\s*\\(?:hline|midrule)\s*$/.test(line)) return true;
  return RULE.test(line) && (/[-=─━═┄┈╌]{2}/.test(line) || /^\s*\|[\s:|]*-[\s:|-]*$/.test(line));
}

/**
 * Confirms a header by the next line, which may be the first row; null if the header does not start a table. Without a
 * rule below the header, the first column may hold row names.
 */
export function confirmedTable(table: Table, line: string): Table | null {
  const { header, separator, columns, count } = table;
  if (header === null) return table;
  if (isRule(line)) {
    const places = [...line.matchAll(/[-=]+/g)].map(({ 0: dashes, index }) => ({
      from: index,
      to: index + dashes.length,
    }));
    if (separator === '  ' && places.length > 1) return placedTable(table, header, places);
    return columns.size === 0 && table.pair === null ? null : { ...table, header: null };
  }
  if (line.trim() === '') return separator === '|' && table.isEdged ? table : null;
  if (separator === '  ' && /^\s/.test(header) && /^\d{1,6}\s/.test(line)) {
    const places = wordsOf(header);
    return wordsOf(line).length > places.length ? placedTable(table, header, places) : null;
  }
  if (separator === '  ' && isRightAligned(header, line)) return placedTable(table, header, wordsOf(header));
  const behind = new Map([...columns].filter(([index]) => index > 0));
  if (behind.size === 0 || !(separator === '  ' || (separator === '|' && /^\s*\|/.test(header)))) return null;
  const [above, cells] = [cellsOf(header, separator), cellsOf(line, separator, table)];
  const isAligned = separator !== '  ' || above.every(({ at }, index) => at === cells[index]?.at);
  return isAligned && cells.length === count ? { ...table, columns: behind, header: null } : null;
}

/** True if each word of the line ends below a word of the header. */
function isRightAligned(header: string, line: string): boolean {
  const [names, words] = [wordsOf(header), wordsOf(line)];
  if (names.length < 2 || names.length !== words.length || !(APART.test(header) || APART.test(line))) return false;
  return names.every(({ to }, index) => to === words[index]?.to);
}

const APART = /\S {2,}\S/;

/** Marks a possible first row as pending from its first secret column on, because only a complete row confirms the table. */
export function pendingSecrets(line: string, { header, separator, columns, isEdged }: Table): SecretSpan[] {
  if (header === null || isRule(line)) return [];
  const starts: (number | undefined)[] = [];
  const [first] = [...columns.keys()].filter((index) => index > 0);
  if (first !== undefined && (separator === '  ' || (separator === '|' && isEdged)))
    starts.push(cellsOf(line, separator, { isEdged, count: MAX_CELLS })[first]?.at);
  if (separator === '  ' && (APART.test(header) || APART.test(line))) {
    const names = secretColumns(wordsOf(header).map(({ from, to }) => header.slice(from, to)));
    const [word] = [...(names?.keys() ?? [])];
    const index = /^\s/.test(header) && /^\d/.test(line) ? 1 : 0;
    if (word !== undefined && word + index > 0) starts.push(wordsOf(line)[word + index]?.from);
  }
  const known = starts.filter((start) => start !== undefined);
  return known.length === 0 ? [] : [pendingSpan(Math.min(...known), line)];
}

function placedTable(table: Table, header: string, places: readonly Place[]): Table | null {
  const names = places.map(({ from }, index) => header.slice(index === 0 ? 0 : from, places[index + 1]?.from));
  const columns = secretColumns(names.map((name) => name.trim()));
  return columns === null ? null : { ...table, columns, places, header: null };
}

function wordsOf(line: string): Place[] {
  return [...line.matchAll(/\S+/g)].map(({ 0: word, index }) => ({ from: index, to: index + word.length }));
}

/** The secrets of a line, and true for `isRow` if the line belongs to the table. */
export interface Row {
  spans: SecretSpan[];
  isRow: boolean;
}

export const NO_ROW: Row = { spans: [], isRow: false };

function isBehindBlank({ last }: Table): boolean {
  return last.at(-1)?.trim() === '';
}

/** @param isOpen true if the line may continue: its last cell is then pending */
export function rowSecrets(line: string, table: Table, isOpen: boolean): Row {
  const { separator, count, places } = table;
  if (table.header !== null || isRule(line)) return { spans: [], isRow: true };
  if (line.trim() === '') return { spans: [], isRow: isOpen };
  if (places !== null) return { spans: placedSecrets(line, table, places, isOpen), isRow: true };
  const isLined = !/[,;\t ]/.test(separator);
  const cells = cellsOf(line, isLined && separator !== '&' ? '|' : separator, table);
  const isCounted = cells.length === count;
  if (isLined) {
    const isOther = !isOpen && !(separator === '&' ? line.includes('&') : PIPE.test(line));
    const isEdgeMissing = table.isEdged ? !EDGE.test(line) : !isOpen && !isCounted;
    if (isOther || (isBehindBlank(table) && isEdgeMissing)) return NO_ROW;
  } else {
    const isOther = !isOpen && isBehindBlank(table) && (!isCounted || /[,;] /.test(line));
    if (isOther || (table.isIndexed && cells[0]?.text === '')) return NO_ROW;
    if (!isOpen && !isCounted) return { spans: oddSecrets(cells, table), isRow: false };
  }
  const rows = [cells];
  // Wiki tables may separate cells by `||`; backquotes may be literal.
  if (cells.length !== count && isLined && line.includes('||')) rows.push(cellsOf(line, '||', table));
  if (cells.length !== count && line.includes('`')) rows.push(cellsOf(line, separator, table, false));
  const row = !isOpen || isCounted ? rows.find(({ length }) => length === count) : undefined;
  const spans = (row === undefined ? rows : [row]).flatMap((each) => [
    ...namedSecrets(each, table, isOpen, line.length),
    ...(each.length > count ? oddSecrets(each, table) : []),
  ]);
  return { spans, isRow: true };
}

function namedSecrets(cells: readonly Cell[], { columns, pair }: Table, isOpen: boolean, end: number): SecretSpan[] {
  const known = new Map(columns);
  const name = plainName(cells[pair?.[0] ?? -1]?.text ?? '');
  const named = pair === null ? null : secretName(name);
  if (pair !== null && named?.strength === 'strong') known.set(pair[1], { name, named });
  return [...known].flatMap(([index, column]) => {
    const cell = cells[index];
    return cell === undefined ? [] : cellSecrets(cell, column, isOpen && index === cells.length - 1, end);
  });
}

/** Random words from the first secret column on, for a row whose number of cells does not match the header. */
function oddSecrets(cells: readonly Cell[], { columns }: Table): SecretSpan[] {
  const first = Math.min(...columns.keys());
  const column = columns.get(first);
  return column === undefined ? [] : cells.slice(first).flatMap((cell) => generatedWords(wordsIn(cell), column));
}

function placedSecrets(line: string, { columns }: Table, places: readonly Place[], isOpen: boolean): SecretSpan[] {
  const words = wordsOf(line);
  return [...columns].flatMap(([index, column]) => {
    const { from, to } = places[index] as Place;
    const inside = words
      .filter((word) => word.from < to && word.to > from)
      .map((word) => ({ text: line.slice(word.from, word.to), at: word.from }));
    // The previous column may overflow into this one.
    if (inside.length > 2) return generatedWords(inside, column);
    return inside.flatMap((cell) => {
      const isLast = cell.at + cell.text.length === line.length;
      return cellSecrets(cell, column, isOpen && isLast, line.length);
    });
  });
}

/** The table after a complete line; null if the line ends the table. */
export function tableAfter(table: Table, line: string, isRow: boolean): Table | null {
  const { header, separator } = table;
  const next = { ...table, last: [...table.last, line].slice(-2) };
  if (header !== null) return next;
  const isBlank = line.trim() === '';
  if (/[,;\t ]/.test(separator)) {
    if (isBlank && separator === '  ') return null;
    const odd = isRow ? 0 : table.odd + (COMMENT.test(line) ? 0 : 1);
    return odd > MAX_ODD_LINES || (!isRow && !isBlank && isBehindBlank(table)) ? null : { ...next, odd };
  }
  if (separator !== '|') return isBlank || !isRow ? null : next;
  if (isBlank) return next;
  const [before = '.', last = '.'] = table.last.length > 1 ? table.last : ['.', ...table.last];
  if (isRule(line)) {
    // The bottom of one table and the top of the next.
    if (isBehindBlank(table) || isRule(last)) return null;
    if (before.trim() !== '') return next;
    const other = tableHeader(last);
    return other && confirmedTable(other, line);
  }
  if (!isRow) return null;
  const other = isBehindBlank(table) ? tableHeader(line) : null;
  return other !== null && other.columns.size > 0 ? other : next;
}

const EDGE = /^\s*[|│┃║┆┊╎]/;

const QUOTED_CELLS: Readonly<Record<string, RegExp>> = {
  ',': /,(\s*"(?:[^"]|"")*"[^,]*|[^,]*)/g,
  ';': /;(\s*"(?:[^"]|"")*"[^;]*|[^;]*)/g,
  '\t': /\t([^\t]*)/g,
};
const BETWEEN: Readonly<Record<string, RegExp>> = { '|': PIPE, '||': /\|\|/, '!!': /!!?/, '&': /&/ };
/** An escaped `|`, or one inside code, does not separate cells. */
const ESCAPED_PIPE = /\\\|/g;
const CODE = /`[^`]*`/g;

/** @param isCode true if a `|` between backquotes belongs to the cell */
function cellsOf(
  line: string,
  separator: Separator,
  { isEdged, count }: Pick<Table, 'isEdged' | 'count'> = { isEdged: true, count: 0 },
  isCode = true,
): Cell[] {
  if (separator === '  ')
    return [...line.matchAll(/[^\s](?:[^\s]| (?! ))*/g)]
      .slice(0, MAX_CELLS)
      .map(({ 0: text, index }) => trimmed(text, index));
  const quoted = QUOTED_CELLS[separator];
  if (quoted !== undefined)
    return [...`${separator}${line}`.matchAll(quoted)]
      .slice(0, MAX_CELLS)
      .map(({ 1: text = '', index }) => trimmed(text, index));
  const found: Cell[] = [];
  let at = 0;
  const plain = line.replace(/\\{1,2}\s*(?:\\hline\s*)?$/, '');
  const blanked = (part: string) => ' '.repeat(part.length);
  const split = plain.replaceAll(ESCAPED_PIPE, blanked).replaceAll(isCode ? CODE : ESCAPED_PIPE, blanked);
  for (const { length } of split.split(BETWEEN[separator] as RegExp)) {
    found.push(trimmed(plain.slice(at, at + length), at));
    at += length + (separator.length === 2 ? 2 : 1);
  }
  // The outer edges, which may be quoted.
  if ((isEdged || found.length > count) && /^["'`([{+]*$/.test(found[0]?.text ?? '')) found.shift();
  if (found.length > Math.max(1, count) && /^["'`)\]},;+\\]*$/.test(found.at(-1)?.text ?? '')) found.pop();
  return found.slice(0, MAX_CELLS);
}

function trimmed(text: string, at: number): Cell {
  return { text: text.trim(), at: at + text.length - text.trimStart().length };
}

/** A column of secrets. */
export interface NamedColumn {
  name: string;
  named: NamedSecret;
}

/** Secret columns by index. */
export type Columns = ReadonlyMap<number, NamedColumn>;

interface Cell {
  text: string;
  /** Index in the line or text. */
  at: number;
}

/** A remark in a column's name: `(prod)` in `Password (prod)`. */
const IN_PARENTHESES = /\s{0,4}\([^()]{0,60}\)/g;
export const MAX_CELLS = 512;
/** Pattern for the JSON field with the column names. */
export const COLUMN_KEY = '(?:(?:column|col|field|header)(?:s|_?names?|_?labels?)?|names)';

/** The secret columns among column names; null without any. */
export function secretColumns(names: readonly string[]): Columns | null {
  const columns = new Map<number, NamedColumn>();
  for (const [index, name] of names.slice(0, MAX_CELLS).entries()) {
    for (const plain of plainName(name).split(/\s?\/\s?/)) {
      const named = secretName(plain) ?? (isLabel(plain.toLowerCase()) ? LABELLED : null);
      if (named?.strength === 'strong') columns.set(index, { name: plain, named });
    }
  }
  return columns.size === 0 ? null : columns;
}

const LABELLED: NamedSecret = { kind: 'password', strength: 'strong' };
const LABELS = [...PASSWORD_LABELS, ...TOKEN_LABELS];

/** Strips decoration from a column name: `🔑 Password for app (temp)?`. */
function plainName(name: string): string {
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

/** Inline tags between the words of a cell. */
const CELL_TAG = '</?(?:br|code|b|i|em|strong|kbd|span|button|a|p|div|small|sup|sub)(?![^\\s/>])[^<>]{0,4096}>';
const CELL_WORDS = new RegExp(`${CELL_TAG}|(?:(?!${CELL_TAG})\\S)+`, 'gi');
const QUOTES = /^(["'`*_]{0,3})(.*?)["'`*_]{0,3}$/;
const BRACKETS = /^(["'`*_([{]{0,4})(.*?)["'`*_)\]},;:]{0,4}$/;

function wordsIn({ text, at }: Cell, pattern = CELL_WORDS): Cell[] {
  return [...text.matchAll(pattern)].map(({ 0: word, index }) => ({ text: word, at: at + index }));
}

function stripAround({ text, at }: Cell, around: RegExp): Cell {
  const [, before = '', value = ''] = around.exec(text) ?? [];
  return { text: value, at: at + before.length };
}

function generatedWords(words: readonly Cell[], { named }: NamedColumn): SecretSpan[] {
  return words
    .map((word) => stripAround(word, BRACKETS))
    .filter(({ text }) => looksGenerated(text) && !isPlainCell(text, named))
    .map(({ text, at }) => spanOf(at, text, named.kind));
}

/**
 * Finds the secrets of a cell: its only word, or the generated-looking words of several. Tags, parentheses, commas and
 * standalone punctuation divide a cell into parts.
 *
 * @param isOpen true if the cell may continue
 * @param end index of the end of the line or text
 * @param pattern matches words and tags
 */
export function cellSecrets(
  cell: Cell,
  column: NamedColumn,
  isOpen: boolean,
  end: number,
  pattern = CELL_WORDS,
): SecretSpan[] {
  const words = wordsIn(cell, pattern);
  const plain = words.filter(({ text }) => !/^<.*>?$/.test(text));
  const [first] = plain;
  if (first === undefined) return [];
  const only = stripAround(first, QUOTES);
  const spans: SecretSpan[] = [];
  if (plain.length > 1) spans.push(...secretsOfParts(words, column));
  else if (isCellSecret(only.text, column)) spans.push(spanOf(only.at, only.text, column.named.kind));
  if (isOpen && only.text !== '' && !(plain.length === 1 && isBenign(only.text)))
    spans.push({ start: only.at, end, kind: PENDING });
  return spans;
}

function secretsOfParts(words: readonly Cell[], column: NamedColumn): SecretSpan[] {
  const spans: SecretSpan[] = [];
  let part: Cell[] = [];
  const endPart = () => {
    const [only] = part;
    const { text, at } = only === undefined ? { text: '', at: 0 } : stripAround(only, BRACKETS);
    if (part.length > 1) spans.push(...generatedWords(part, column));
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

/** True unless the cell is a word, sentence or placeholder. */
export function isCellSecret(value: string, { name, named }: NamedColumn): boolean {
  if (/\s|^\d+\/\d+$/.test(value) || isPlainCell(value, named)) return false;
  return isSecretValue(value, named, name, { isQuoted: false, isProse: true, next: ' ' });
}

const UNIT = String.raw`(?:(?:%|‰|°[CF]|[kKMGTP]i?[Bb]?(?:ps)?|B|[numµ]?s|min|h|d|[kMG]?Wh?|[mk]?[VA]|[kMG]?Hz|px|pt|r?em|[cmk]?m|[mk]?g|x|st|nd|rd|th|USD|EUR|tok(?:ens?)?)(?:\/\w{1,8})?)`;
const PARTED = String.raw`(?:\d{1,3}(?:[,.]\d{3}){1,6}(?:[.,]\d{1,12})?|\d{1,12}[.,]\d{1,12})`;
const NUMBER = String.raw`(?:${PARTED}|\d{1,12})`;
/** A number with separators, a currency or a unit: `1,234`, `$0.02`, `98.5%`. Digits alone may be a secret. */
const QUANTITY = new RegExp(String.raw`^[~≈<>≤≥±+-]{0,2}(?:[$€£¥]${NUMBER}${UNIT}?|${PARTED}${UNIT}?|\d{1,9}${UNIT})$`);
/** A style, setting or constant name: `--color-primary`, `color.primary.500`, `STRIPE_KEY_V2`. */
const STYLE_PART = String.raw`(?:[a-z]{2,22}(?:[A-Z][a-z]{1,20}){0,3}|v?\d{1,4}|\d{1,3}[a-z]{1,2})`;
const DOTTED = new RegExp(`^(?=.*[a-z]{3})(?:--)?${STYLE_PART}(?:[-._/]${STYLE_PART})+$`);
const NUMBERED = /^(?=.*[A-Z]{3})[A-Z]{2,22}(?:_(?:[A-Z]{2,22}|V?\d{1,3}))+$/;
const HASHED = /^(?:[bs]crypt|yescrypt|argon2\w{0,2}|pbkdf2|sha-?\d{1,3}|md5)(?:[-_:][a-z\d]{1,6}){0,2}$/i;

/** True for a quantity, identifier or algorithm, common in columns such as `key` and `token`. */
function isPlainCell(value: string, { kind }: NamedSecret): boolean {
  if (QUANTITY.test(value) || HASHED.test(value) || isTerm(value)) return true;
  if (NUMBERED.test(value) && (kind !== 'password' || /PASS|PWD|SECRET|TOKEN|KEY/.test(value))) return true;
  return kind !== 'password' && DOTTED.test(value) && (kind !== 'secret' || value.split(/[-._/]/).length > 2);
}
