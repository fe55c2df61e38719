import type { SecretSpan } from './secret-span';
import { COLUMN_KEY, type Columns, cellSecrets, MOST_CELLS, secretColumns } from './table-cells';
import { TABLE_HINT } from './table-secrets';

/** `"columns": […]` followed by `"rows": [[…], …]` or one row, or a list of lists that begins with a list of names. */
const JSON_NAME = String.raw`"[^"\\[\]]{1,40}"\s{0,40}`;
const JSON_HEADER = new RegExp(
  String.raw`"${COLUMN_KEY}"\s{0,8}:\s{0,8}\[([^[\]]{1,16384})\](?:[^[\]]{0,200}\[[^[\]]{0,4096}\]){0,2}[^[\]]{0,200}"(?:rows?|values|data|records|results)"\s{0,8}:\s{0,8}(?:\[\s{0,40}(?=\[))?(?=\[)|\[\s{0,40}\[(\s{0,40}${JSON_NAME}(?:,\s{0,40}${JSON_NAME}){1,511})\]\s{0,8},\s{0,40}(?=\[)`,
  'gi',
);
const JSON_ROW = /\s{0,40},?\s{0,40}\[/y;
const JSON_CELL = /\s{0,40}(?:"((?:[^"\\]|\\.){0,4000})"?|[^\s",[\]{}]{0,64})\s{0,40}(,|\]|$)/y;
/** Longest list or object in a cell. */
const LONGEST_CELL = 1_024;

/** Secrets in the rows of JSON whose columns are named before them. */
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

/** @returns the end of the row; null if the text ends before it, or goes on otherwise */
function jsonRow(text: string, from: number, columns: Columns, spans: SecretSpan[], isOpen: boolean): number | null {
  let at = from;
  for (let column = 0; column < MOST_CELLS; column += 1) {
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

/** The end of the list or object that a cell begins with; null if it begins with none. */
function nestedEnd(text: string, from: number): number | null {
  let [depth, isString] = [0, false];
  for (let at = from; at < Math.min(text.length, from + LONGEST_CELL); at += 1) {
    const character = text.charAt(at);
    if (isString && character === '\\') at += 1;
    else if (character === '"') isString = !isString;
    else if (!isString && /[[{]/.test(character)) depth += 1;
    else if (!isString && /[\]}]/.test(character)) depth -= 1;
    if (depth < 1 && !/\s/.test(character)) return at > from && /[\]}]/.test(character) && depth === 0 ? at + 1 : null;
  }
  return null;
}

function namesIn(list: string): string[] {
  const pattern = list.includes('{')
    ? /"(?:name|column|label|title|field|key)"\s{0,4}:\s{0,4}"([^"]{1,64})"/g
    : /"([^"]{1,64})"/g;
  return [...list.matchAll(pattern)].map(([, name = '']) => name);
}
