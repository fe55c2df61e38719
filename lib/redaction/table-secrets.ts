import { type NamedSecret, secretName } from './secret-names';
import { BEGUN, type SecretSpan } from './secret-span';
import { isSecretValue, isStandIn } from './secret-values';

/** The columns of a table that hold secrets. */
export interface Table {
  /** What stands between cells: `¦` for the header of an HTML table, two blanks for aligned columns. */
  separator: string;
  count: number;
  columns: ReadonlyMap<number, NamedColumn>;
  /** False until a line of dashes follows the header: without it, the header may be any line. */
  isSure: boolean;
  /** Its lines come from tags: lines without any may stand between. */
  isMarkup: boolean;
}

interface NamedColumn {
  name: string;
  named: NamedSecret;
}

interface Cell {
  text: string;
  at: number;
}

const HEADER_CELL = /^["'`*]{0,3}(?:[A-Za-z][\w .-]{0,40}|#|№)["'`*]{0,3}$/;
const DASHES = /^[\s|+:=-]*-{2,}[\s|+:=-]*$|^\s*[├╞╠┝┌╔][─═━┬┼┴╪╬┿╦]+[┤╡╣┥┐╗]\s*$/;
/** Most cells of a row. */
const MOST_CELLS = 64;

/** The secret columns that a list of names has; null if it has none. */
export function secretColumns(names: readonly string[]): ReadonlyMap<number, NamedColumn> | null {
  const columns = new Map<number, NamedColumn>();
  for (const [index, name] of names.slice(0, MOST_CELLS).entries()) {
    const named = secretName(name.replaceAll(/["'`*]/g, ''));
    if (named?.strength === 'strong') columns.set(index, { name, named });
  }
  return columns.size === 0 ? null : columns;
}

/** Reads a line as the header of a table; null if it names no column of secrets. */
export function tableHeader(line: string): Table | null {
  if (line.length > 1_024) return null;
  const separator = separatorOf(line);
  const cells = cellsOf(line, separator);
  if (!cells.every(({ text }) => HEADER_CELL.test(text))) return null;
  const columns = secretColumns(cells.map(({ text }) => text));
  if (columns === null) return null;
  const isList =
    cells.length > 1 &&
    (separator === '¦' || (/[,;\t]/.test(separator) && /^\S/.test(line)) || /^[\w-]+(?:\|[\w-]+)+$/.test(line));
  const isSure = isList || (separator === '  ' && cells.length > 1 && !/[a-z]/.test(line));
  if (!isSure && /[,;]/.test(separator)) return null;
  const isMarkup = separator === '¦';
  return { separator: isMarkup ? '|' : separator, count: cells.length, columns, isSure, isMarkup };
}

function separatorOf(line: string): string {
  const found = ['¦', '│', '|', '\t', ';'].find((character) => line.includes(character));
  if (found !== undefined) return found;
  return /,(?! )/.test(line) || /^[a-z_]+(?:, [a-z_]+)+$/.test(line) ? ',' : '  ';
}

/** True for a line of dashes between a header and its rows. */
export function isRule(line: string): boolean {
  return DASHES.test(line);
}

/**
 * The secrets of a row; null if the line is none.
 *
 * @param isOpen whether the line may go on: then a cell at its end may become a secret
 */
export function rowSecrets(line: string, table: Table, isWhole: boolean, isOpen: boolean): SecretSpan[] | null {
  if (DASHES.test(line)) return [];
  if (line.trim() === '') return isWhole && !table.isMarkup ? null : [];
  const cells = cellsOf(line, table.separator);
  if (isWhole && cells.length !== table.count) return null;
  return [...table.columns].flatMap(([index, column]) => {
    const cell = cells[index];
    if (cell === undefined) return [];
    const [, before = '', value = ''] = /^(["'`*]{0,3})(.*?)["'`*]{0,3}$/.exec(cell.text) ?? [];
    const start = cell.at + before.length;
    if (isCellSecret(value, column)) return [{ start, end: start + value.length, kind: column.named.kind }];
    const isBegun = isOpen && index === cells.length - 1 && value !== '' && !isStandIn(value);
    return isBegun ? [{ start, end: line.length, kind: BEGUN }] : [];
  });
}

/** True for a cell that is no word, no sentence and no placeholder. */
export function isCellSecret(value: string, { name, named }: NamedColumn): boolean {
  return !/\s/.test(value) && isSecretValue(value, named, name, { isQuoted: false, isProse: true, next: ' ' });
}

const BETWEEN: Readonly<Record<string, RegExp>> = {
  '  ': /[^\s](?:[^\s]| (?! ))*/g,
  ',': /"(?:[^"]|"")*"|[^,"]+|(?<=,)(?=,)/g,
  ';': /"(?:[^"]|"")*"|[^;"]+|(?<=;)(?=;)/g,
  '\t': /[^\t]+|(?<=\t)(?=\t)/g,
};

function cellsOf(line: string, separator: string): Cell[] {
  const between = BETWEEN[separator];
  const found: Cell[] = [];
  if (between !== undefined) {
    for (const { 0: text, index } of line.matchAll(between)) found.push(trimmed(text, index));
    return found.slice(0, MOST_CELLS);
  }
  let at = 0;
  for (const text of line.split(separator)) {
    found.push(trimmed(text, at));
    at += text.length + 1;
  }
  // the outer edges
  if (found[0]?.text === '') found.shift();
  if (found.length > 1 && found.at(-1)?.text === '') found.pop();
  return found.slice(0, MOST_CELLS);
}

function trimmed(text: string, at: number): Cell {
  return { text: text.trim(), at: at + text.length - text.trimStart().length };
}

/** `"columns": […]` with `"rows": [[…], …]`, or a list of lists of which the first has names. */
const JSON_HEADER =
  /"(?:(?:column|col|field|header)(?:s|_?names?|_?labels?)?|names)"\s{0,8}:\s{0,8}\[([^[\]]{1,2000})\][^[\]]{0,200}"(?:rows|values|data|records|results)"\s{0,8}:\s{0,8}\[\s{0,40}(?=\[)|\[\s{0,40}\[(\s{0,40}"[\w .-]{1,40}"\s{0,40}(?:,\s{0,40}"[\w .-]{1,40}"\s{0,40}){1,63})\]\s{0,8},\s{0,40}(?=\[)/gi;
const JSON_ROW = /\s{0,40},?\s{0,40}\[/y;
const JSON_CELL = /\s{0,40}(?:"((?:[^"\\]|\\.){0,4000})"?|[^\s",[\]]{0,64})\s{0,40}(,|\]|$)/y;

/** Secrets in the rows of JSON whose columns are named before them. */
export function jsonTables(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  if (!lower.includes('[') || !/pass|pwd|secret|token|key|cred/.test(lower)) return;
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
        if (named !== undefined && isCellSecret(value, named))
          spans.push({ start, end: start + value.length, kind: named.named.kind });
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
