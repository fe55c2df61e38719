import { GUTTER } from './normalize-text';
import type { SecretSpan } from './secret-values';
import {
  COLUMN_KEY,
  type Columns,
  cellSecrets,
  MAX_CELLS,
  type NamedColumn,
  secretColumns,
  TABLE_HINT,
} from './table-secrets';

const TAG = /<(\/?)(table|tr|td|th)(\s[^<>]{0,4096})?>/gi;
/** The start of a table tag at the end of a text. */
const PARTIAL_TAG = /<\/?(?:t(?:[a-z]{0,4}|[a-z]{1,4}\s[^<>]{0,4096}))?$/i;
const MAX_TAG_LENGTH = 4_110;
/** A tag inside a cell, or a word. */
const WORD = /<[^<>]{0,4096}(?:>|$)|[^\s<>]+/g;
/** Longest header cell in UTF-16 code units, tags included. */
const MAX_NAME_TEXT = 400;
/** Maximum number of nested tables. */
const MAX_NESTED_TABLES = 16;
/** Maximum number of columns or rows that a cell spans. */
const MAX_SPANNED = 32;

interface HtmlTable {
  columns: Columns | null;
  /** Header cells of the current row, with the first column of each in `spans`. */
  row: { names: string[]; spans: number[]; isHeader: boolean } | null;
  /** First column of the current cell, and of the next one. */
  cell: number;
  next: number;
  isInCell: boolean;
  isFirstRow: boolean;
  /** Columns covered by a rowspan, with the number of rows left. */
  spanned: ReadonlyMap<number, number>;
}

const NO_TABLE: HtmlTable = {
  columns: null,
  row: null,
  cell: -1,
  next: 0,
  isInCell: false,
  isFirstRow: false,
  spanned: new Map(),
};

/**
 * Finds secrets in the columns of HTML tables.
 *
 * Ordering: `scan` takes chunks in text order; its state depends only on the text so far.
 */
export class HtmlTables {
  /** The current table. */
  #table: HtmlTable = { ...NO_TABLE };
  /** Enclosing tables, outermost first. */
  #outer: readonly HtmlTable[] = [];
  /** The incomplete tag at the end of the last chunk. */
  #partial = '';
  /** True if the next chunk starts a line. */
  #isAtLine = true;

  clone(): HtmlTables {
    const clone = new HtmlTables();
    const { row } = this.#table;
    clone.#table = { ...this.#table, row: row && { ...row, names: [...row.names], spans: [...row.spans] } };
    clone.#outer = this.#outer;
    clone.#partial = this.#partial;
    clone.#isAtLine = this.#isAtLine;
    return clone;
  }

  /** @param isOpen true if more text may follow */
  scan(chunk: string, isOpen: boolean): SecretSpan[] {
    if (!this.#table.isInCell && this.#partial === '' && !chunk.includes('<')) {
      this.#isAtLine = chunk.endsWith('\n');
      return [];
    }
    const before = this.#partial.length;
    const text = this.#partial + chunk;
    const spans: SecretSpan[] = [];
    let at = 0;
    for (const { 0: tag, 1: slash, 2: name = '', 3: attributes = '', index } of text.matchAll(TAG)) {
      this.#read(text.slice(0, index), at, false, spans);
      at = index + tag.length;
      this.#enter(name.toLowerCase(), slash === '/', attributes);
    }
    this.#partial = PARTIAL_TAG.exec(text.slice(at).slice(-MAX_TAG_LENGTH))?.[0] ?? '';
    this.#read(this.#partial === '' ? text : text.slice(0, -this.#partial.length), at, isOpen, spans);
    this.#isAtLine = chunk.endsWith('\n');
    return spans
      .filter(({ end }) => end > before)
      .map(({ start, end, kind }) => ({ start: Math.max(0, start - before), end: end - before, kind }));
  }

  #enter(tag: string, isEnd: boolean, attributes: string): void {
    if (tag === 'table') this.#enterTable(isEnd);
    else if (tag === 'tr') {
      this.#endRow();
      if (!isEnd) this.#table.row = { names: [], spans: [], isHeader: true };
    } else this.#enterCell(tag, isEnd, attributes);
  }

  #enterTable(isEnd: boolean): void {
    if (isEnd) {
      this.#table = { ...(this.#outer.at(-1) ?? NO_TABLE) };
      this.#outer = this.#outer.slice(0, -1);
      return;
    }
    if (this.#table.isInCell) this.#outer = [...this.#outer, this.#table].slice(-MAX_NESTED_TABLES);
    this.#table = { ...NO_TABLE, isFirstRow: true };
  }

  #enterCell(tag: string, isEnd: boolean, attributes: string): void {
    const table = this.#table;
    table.isInCell = !isEnd;
    if (isEnd) return;
    while (table.spanned.has(table.next)) table.next += 1;
    const [columns, rows] = ['colspan', 'rowspan'].map((name) => spanIn(attributes, name));
    table.cell = table.next;
    table.next += columns ?? 1;
    if ((rows ?? 1) > 1 && table.cell < MAX_SPANNED) {
      const spanned = Array.from({ length: columns ?? 1 }, (_, index) => [table.cell + index, rows ?? 1] as const);
      table.spanned = new Map([...table.spanned, ...spanned]);
    }
    const { row } = table;
    if (row === null) return;
    if (tag === 'td') row.isHeader = false;
    if ((row.isHeader || table.isFirstRow) && row.names.length < MAX_CELLS) {
      row.names.push('');
      row.spans.push(table.cell);
    } else table.row = null;
  }

  #endRow(): void {
    const table = this.#table;
    const { names = [], spans = [], isHeader = false } = table.row ?? {};
    if (names.length > 0) {
      const found = secretColumns(names.map((name) => name.replaceAll(/<[^<>]*>/g, ' ').trim()));
      const columns = new Map<number, NamedColumn>();
      for (const [index, column] of found ?? []) {
        const end = spans[index + 1] ?? table.next;
        for (let at = spans[index] ?? 0; at < end; at += 1) columns.set(at, column);
      }
      // Without a header row, the first column may hold row names.
      if (!isHeader) columns.delete(0);
      table.columns = columns;
      table.isFirstRow = false;
    }
    if (table.cell >= 0) {
      const left = [...table.spanned].map(([column, rows]) => [column, rows - 1] as const);
      table.spanned = new Map(left.filter(([, rows]) => rows > 0));
    }
    Object.assign(table, { row: null, cell: -1, next: 0, isInCell: false });
  }

  /** The first secret column that a cell spans. */
  #column(): NamedColumn | undefined {
    const { columns, cell, next } = this.#table;
    for (let index = cell; index < next; index += 1) {
      const column = columns?.get(index);
      if (column !== undefined) return column;
    }
    return undefined;
  }

  /** Reads a cell line by line, because chunks end at line breaks. */
  #read(text: string, from: number, isOpen: boolean, spans: SecretSpan[]): void {
    if (!this.#table.isInCell || from === text.length) return;
    const column = this.#column();
    for (let index = from; index < text.length; ) {
      const newline = text.indexOf('\n', index);
      const end = newline < 0 ? text.length : newline;
      const line = text.slice(index, end);
      const isAtLine = index === 0 ? this.#isAtLine : text[index - 1] === '\n';
      const gutter = isAtLine ? (GUTTER.exec(line)?.[0].length ?? 0) : 0;
      const { names = [] } = this.#table.row ?? {};
      if (names.length > 0) names.push(`${names.pop()} ${untagged(line.slice(gutter))}`.slice(0, MAX_NAME_TEXT));
      if (column !== undefined) {
        const lead = untagged(line).trim().includes(' ') ? gutter : 0;
        const cell = { text: line.slice(lead), at: index + lead };
        spans.push(...cellSecrets(cell, column, isOpen && end === text.length, text.length, WORD));
      }
      index = end + 1;
    }
  }
}

/** The value of a `colspan` or `rowspan` attribute, 1 by default. */
function spanIn(attributes: string, name: string): number {
  const [, count = '1'] = new RegExp(`\\s${name}\\s{0,4}=\\s{0,4}["']?(\\d{1,4})`, 'i').exec(attributes) ?? [];
  return Math.min(Math.max(1, Number(count)), MAX_SPANNED);
}

/** Replaces each complete tag of a line with a blank. */
function untagged(line: string): string {
  return line.replaceAll(/<[^<>]{1,4096}>/g, ' ');
}

/** `"columns": […]` followed by `"rows": [[…], …]` or one row, or a list of lists whose first list has the names. */
const JSON_NAME = String.raw`"[^"\\[\]]{1,40}"\s{0,40}`;
const JSON_HEADER = new RegExp(
  String.raw`"${COLUMN_KEY}"\s{0,8}:\s{0,8}\[([^[\]]{1,16384})\](?:[^[\]]{0,200}\[[^[\]]{0,4096}\]){0,2}[^[\]]{0,200}"(?:rows?|values|data|records|results)"\s{0,8}:\s{0,8}(?:\[\s{0,40}(?=\[))?(?=\[)|\[\s{0,40}\[(\s{0,40}${JSON_NAME}(?:,\s{0,40}${JSON_NAME}){1,511})\]\s{0,8},\s{0,40}(?=\[)`,
  'gi',
);
const JSON_ROW = /\s{0,40},?\s{0,40}\[/y;
const JSON_CELL = /\s{0,40}(?:"((?:[^"\\]|\\.){0,4000})"?|[^\s",[\]{}]{0,64})\s{0,40}(,|\]|$)/y;
/** Longest list or object in a cell, in UTF-16 code units. */
const MAX_NESTED_CELL = 1_024;

/** Finds secrets in JSON rows whose column names precede them. */
export function jsonTables(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  if (!lower.includes('[') || !TABLE_HINT.test(lower)) return;
  for (const { 0: whole, 1: fields = '', 2: first, index } of text.matchAll(JSON_HEADER)) {
    const columns = secretColumns(first === undefined ? namesIn(fields) : namesIn(first));
    if (columns === null) continue;
    for (let at: number | null = index + whole.length; at !== null; ) {
      JSON_ROW.lastIndex = at;
      at = JSON_ROW.test(text) ? jsonRow(text, JSON_ROW.lastIndex, columns, spans, isOpen) : null;
    }
  }
}

/** @returns the end of the row; null if the row is incomplete or malformed */
function jsonRow(text: string, from: number, columns: Columns, spans: SecretSpan[], isOpen: boolean): number | null {
  let at = from;
  for (let column = 0; column < MAX_CELLS; column += 1) {
    JSON_CELL.lastIndex = nestedEnd(text, at) ?? at;
    const cell = JSON_CELL.exec(text);
    if (cell === null) return null;
    const value = cell[1] ?? '';
    const start = cell.index + cell[0].indexOf('"') + 1;
    const named = columns.get(column);
    const isLast = isOpen && start + value.length === text.length;
    if (named !== undefined && value !== '')
      spans.push(...cellSecrets({ text: value, at: start }, named, isLast, text.length));
    at = JSON_CELL.lastIndex;
    if (cell[2] !== ',') return cell[2] === ']' ? at : null;
  }
  return null;
}

/** The end of the list or object at the start of a cell; null without one. */
function nestedEnd(text: string, from: number): number | null {
  let [depth, isString] = [0, false];
  for (let index = from; index < Math.min(text.length, from + MAX_NESTED_CELL); index += 1) {
    const character = text.charAt(index);
    if (isString && character === '\\') index += 1;
    else if (character === '"') isString = !isString;
    else if (!isString && /[[{]/.test(character)) depth += 1;
    else if (!isString && /[\]}]/.test(character)) depth -= 1;
    if (depth < 1 && !/\s/.test(character))
      return index > from && /[\]}]/.test(character) && depth === 0 ? index + 1 : null;
  }
  return null;
}

function namesIn(list: string): string[] {
  const pattern = list.includes('{')
    ? /"(?:name|column|label|title|field|key)"\s{0,4}:\s{0,4}"([^"]{1,64})"/g
    : /"([^"]{1,64})"/g;
  return [...list.matchAll(pattern)].map(([, name = '']) => name);
}
