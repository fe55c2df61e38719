import { type NamedSecret, PASSWORD_LABELS, secretName, TOKEN_LABELS } from './secret-names';
import { BEGUN, type SecretSpan, spanOf } from './secret-span';
import { isSecretValue, isStandIn } from './secret-values';

/** Separates cells: `|` stands for every vertical line, two blanks for aligned columns. */
type Separator = '|' | '||' | '!!' | '&' | '\t' | ';' | ',' | '  ';

/** The columns of a table that hold secrets. */
export interface Table {
  separator: Separator;
  count: number;
  columns: Columns;
  /** Of aligned columns whose cells are found by their place: where each begins and ends. */
  places: readonly Place[] | null;
  /** Null once rows follow; until then the header, which may be any line. */
  header: string | null;
  /** True if the first column has no name: then each row has a number or a name there. */
  isIndexed: boolean;
  /** Lines in a row that are none of the table's. */
  odd: number;
}

interface Place {
  from: number;
  to: number;
}

export interface NamedColumn {
  name: string;
  named: NamedSecret;
}

export type Columns = ReadonlyMap<number, NamedColumn>;

interface Cell {
  text: string;
  at: number;
}

/** A line without one of these names no column of secrets. */
export const TABLE_HINT = new RegExp(
  `pass|pwd|pw|secret|token|key|cred|${[...PASSWORD_LABELS, ...TOKEN_LABELS].join('|')}`,
  'i',
);
/** A name in a list that commas or blanks separate, as any sentence may have them. */
const HEADER_CELL = /^(?:["'`*]{0,3}(?:\p{L}[\p{L}\p{M}\w ./-]{0,40}[:?*]?|#|№)["'`*]{0,3})?$/u;
const IN_PARENTHESES = /\s{0,4}\([^()]{0,60}\)/g;
const LONGEST_NAME = 60;
/** The vertical lines of boxes. */
const PIPE = /[|│┃║┆┊╎]/;
const RULE = /^[\s|+:=*\u2500-\u257f-]+$/;
/** Most cells of a row. */
const MOST_CELLS = 64;
/** So many lines in a row that are no rows end a list: a value may have line breaks. */
const MOST_ODD = 2;

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

/** Reads a line as the header of a table; null if it is none. */
export function tableHeader(line: string): Table | null {
  if (line.length > 1_024) return null;
  const separator = separatorOf(line);
  const names = cellsOf(line, separator).map(({ text }) => text);
  if (names.length === 0 || names.some((name) => name.length > LONGEST_NAME)) return null;
  const columns = secretColumns(names);
  const isPlain = names.every((name) => HEADER_CELL.test(name.replaceAll(IN_PARENTHESES, '')));
  const isIndexed = names[0] === '';
  const table = { separator, count: names.length, columns: columns ?? NO_COLUMNS, places: null, isIndexed, odd: 0 };
  if (columns !== null && names.length > 1 && isList(line, separator, isPlain)) return { ...table, header: null };
  if (/[,;]/.test(separator) || (separator === '  ' && !isPlain)) return null;
  return { ...table, header: line };
}

const NO_COLUMNS: Columns = new Map();

/** True for a line of names that only tables have. */
function isList(line: string, separator: Separator, isPlain: boolean): boolean {
  if (separator === '||' || separator === '&') return true;
  if (separator === '|') return /^[\w-]+(?:\|[\w-]+)+$/.test(line);
  return isPlain && (separator === '  ' ? !/[a-z]/.test(line) : separator !== '!!' && /^\S|^[\t,;]\S/.test(line));
}

function separatorOf(line: string): Separator {
  if (/^\s*\|\|.*\|\|\s*$/.test(line)) return '||';
  if (/^\s*!.*!!/.test(line)) return '!!';
  if (PIPE.test(line)) return '|';
  if (/ & .*\\\s*(?:\\hline\s*)?$/.test(line)) return '&';
  if (/\S.*\t|^\t/.test(line)) return '\t';
  if (line.includes(';')) return ';';
  return /,(?! )/.test(line) || /^[a-z_]+(?:, [a-z_]+)+$/.test(line) ? ',' : '  ';
}

/** True for a line between a header and its rows. */
function isRule(line: string): boolean {
  if (/^\s*\\(?:hline|midrule)\s*$/.test(line)) return true;
  return RULE.test(line) && (/[-=─━═┄┈╌]{2}/.test(line) || /^\s*\|[\s:|]*-[\s:|-]*$/.test(line));
}

/**
 * The table that a header begins, by the line below it; null if it begins none. The rows may begin with this line.
 *
 * The first column of a table without a rule may hold the names of rows.
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
    return columns.size === 0 ? null : { ...table, header: null };
  }
  if (line.trim() === '') return separator === '|' && /^\s*\|/.test(header) ? table : null;
  if (separator === '  ' && /^\s/.test(header) && /^\d{1,6}\s/.test(line)) {
    const places = wordsOf(header);
    return wordsOf(line).length > places.length ? placedTable(table, header, places) : null;
  }
  const behind = new Map([...columns].filter(([index]) => index > 0));
  if (behind.size === 0 || !(separator === '  ' || (separator === '|' && /^\s*\|/.test(header)))) return null;
  const [above, cells] = [cellsOf(header, separator), cellsOf(line, separator)];
  const isAligned = separator !== '  ' || above.every(({ at }, index) => at === cells[index]?.at);
  return isAligned && cells.length === count ? { ...table, columns: behind, header: null } : null;
}

function placedTable(table: Table, header: string, places: readonly Place[]): Table | null {
  const names = places.map(({ from }, index) => header.slice(index === 0 ? 0 : from, places[index + 1]?.from));
  const columns = secretColumns(names.map((name) => name.trim()));
  return columns === null ? null : { ...table, columns, places, header: null };
}

function wordsOf(line: string): Place[] {
  return [...line.matchAll(/\S+/g)].map(({ 0: word, index }) => ({ from: index, to: index + word.length }));
}

/**
 * The secrets of a row; null if the line is none.
 *
 * @param isOpen whether the line may go on: then a cell at its end may become a secret
 */
export function rowSecrets(line: string, table: Table, isWhole: boolean, isOpen: boolean): SecretSpan[] | null {
  if (table.header !== null || isRule(line)) return [];
  if (line.trim() === '') return isWhole ? null : [];
  if (table.places !== null) return placedSecrets(line, table, table.places, isOpen);
  let cells = cellsOf(line, table.separator === '!!' || table.separator === '||' ? '|' : table.separator);
  // cells of a wiki's table may stand behind two lines each
  if (cells.length !== table.count && table.separator !== '  ' && line.includes('||')) cells = cellsOf(line, '||');
  if ((isWhole && cells.length !== table.count) || (table.isIndexed && cells[0]?.text === '')) return null;
  return [...table.columns].flatMap(([index, column]) => {
    const cell = cells[index];
    return cell === undefined ? [] : cellSecret(cell, column, isOpen && index === cells.length - 1, line.length);
  });
}

function placedSecrets(line: string, { columns }: Table, places: readonly Place[], isOpen: boolean): SecretSpan[] {
  const words = wordsOf(line);
  return [...columns].flatMap(([index, column]) => {
    const { from, to } = places[index] as Place;
    const own = words.filter((word) => word.from < to && word.to > from);
    // a value of the column before may reach into this one
    if (own.length > 2) return [];
    return own.flatMap((word) => {
      const cell = { text: line.slice(word.from, word.to), at: word.from };
      return cellSecret(cell, column, isOpen && word.to === line.length, line.length);
    });
  });
}

function cellSecret(cell: Cell, column: NamedColumn, mayGoOn: boolean, end: number): SecretSpan[] {
  const [, before = '', value = ''] = /^(["'`*]{0,3})(.*?)["'`*]{0,3}$/.exec(cell.text) ?? [];
  const start = cell.at + before.length;
  if (isCellSecret(value, column)) return [{ start, end: start + value.length, kind: column.named.kind }];
  return mayGoOn && value !== '' && !isStandIn(value) ? [{ start, end, kind: BEGUN }] : [];
}

/** True if a table ends with a line. @param odd how many lines in a row are no rows, with this one */
export function isTableOver({ header, separator }: Table, line: string, odd: number): boolean {
  if (header !== null) return false;
  return line.trim() === '' || odd > (/[,;\t]/.test(separator) ? MOST_ODD : 0);
}

/** True for a cell that is no word, no sentence and no placeholder. */
export function isCellSecret(value: string, { name, named }: NamedColumn): boolean {
  if (/\s|^\d+\/\d+$/.test(value)) return false;
  return isSecretValue(value, named, name, { isQuoted: false, isProse: true, next: ' ' });
}

const QUOTED_CELLS: Readonly<Record<string, RegExp>> = {
  ',': /,(\s*"(?:[^"]|"")*"[^,]*|[^,]*)/g,
  ';': /;(\s*"(?:[^"]|"")*"[^;]*|[^;]*)/g,
  '\t': /\t([^\t]*)/g,
};
const BETWEEN: Readonly<Record<string, RegExp>> = { '|': PIPE, '||': /\|\|/, '!!': /!!?/, '&': /&/ };

function cellsOf(line: string, separator: Separator): Cell[] {
  if (separator === '  ')
    return [...line.matchAll(/[^\s](?:[^\s]| (?! ))*/g)]
      .slice(0, MOST_CELLS)
      .map(({ 0: text, index }) => trimmed(text, index));
  const quoted = QUOTED_CELLS[separator];
  if (quoted !== undefined)
    return [...`${separator}${line}`.matchAll(quoted)]
      .slice(0, MOST_CELLS)
      .map(({ 1: text = '', index }) => trimmed(text, index));
  const found: Cell[] = [];
  let at = 0;
  for (const text of line.replace(/\\{1,2}\s*(?:\\hline\s*)?$/, '').split(BETWEEN[separator] as RegExp)) {
    found.push(trimmed(text, at));
    at += text.length + (separator.length === 2 ? 2 : 1);
  }
  // the outer edges, which may be in quotes
  if (/^["'`([{+]*$/.test(found[0]?.text ?? '')) found.shift();
  if (found.length > 1 && /^["'`)\]},;+\\]*$/.test(found.at(-1)?.text ?? '')) found.pop();
  return found.slice(0, MOST_CELLS);
}

function trimmed(text: string, at: number): Cell {
  return { text: text.trim(), at: at + text.length - text.trimStart().length };
}

/** `"columns": […]` with `"rows": [[…], …]`, or a list of lists of which the first has names. */
const JSON_NAME = String.raw`"[^"\\[\]]{1,40}"\s{0,40}`;
const JSON_HEADER = new RegExp(
  String.raw`"${COLUMN_KEY}"\s{0,8}:\s{0,8}\[([^[\]]{1,2000})\][^[\]]{0,200}"(?:rows|values|data|records|results)"\s{0,8}:\s{0,8}\[\s{0,40}(?=\[)|\[\s{0,40}\[(\s{0,40}${JSON_NAME}(?:,\s{0,40}${JSON_NAME}){1,63})\]\s{0,8},\s{0,40}(?=\[)`,
  'gi',
);
const JSON_ROW = /\s{0,40},?\s{0,40}\[/y;
const JSON_CELL = /\s{0,40}(?:"((?:[^"\\]|\\.){0,4000})"?|[^\s",[\]]{0,64})\s{0,40}(,|\]|$)/y;

/** Secrets in the rows of JSON whose columns are named before them. */
export function jsonTables(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  if (!lower.includes('[') || !TABLE_HINT.test(lower)) return;
  for (const { 0: whole, 1: fields = '', 2: first, index } of text.matchAll(JSON_HEADER)) {
    const columns = secretColumns(first === undefined ? namesIn(fields) : namesIn(first));
    if (columns === null) continue;
    let at = index + whole.length;
    for (;;) {
      JSON_ROW.lastIndex = at;
      if (!JSON_ROW.test(text)) break;
      at = JSON_ROW.lastIndex;
      for (let column = 0; ; column += 1) {
        JSON_CELL.lastIndex = at;
        const cell = JSON_CELL.exec(text);
        if (cell === null) return;
        const value = cell[1] ?? '';
        const start = at + cell[0].indexOf('"') + 1;
        const named = columns.get(column);
        if (named !== undefined && isCellSecret(value, named)) spans.push(spanOf(start, value, named.named.kind));
        else if (named !== undefined && isOpen && value !== '' && start + value.length === text.length)
          spans.push({ start, end: text.length, kind: BEGUN });
        at += cell[0].length;
        if (cell[2] === ']') break;
        if (cell[2] === '') return;
      }
    }
  }
}

function namesIn(list: string): string[] {
  const pattern = list.includes('{')
    ? /"(?:name|column|label|title|field|key)"\s{0,4}:\s{0,4}"([^"]{1,64})"/g
    : /"([^"]{1,64})"/g;
  return [...list.matchAll(pattern)].map(([, name = '']) => name);
}
