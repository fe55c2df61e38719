import type { Token, Tokens } from 'marked';

/** How far a table is parsed to have as many rows as are shown. */
export const MOST_TABLE = 32_000;
/** What is laid out of a table; nobody reads on. */
export const ROWS_SHOWN = 300;

/** A table of which only so many rows were parsed as are shown. */
export interface LongTable extends Tokens.Table {
  /** How many it has in all. */
  rowCount: number;
}

/** How far a table goes up to its first row; the first line of one may be longer than any other block. */
export function tableHead(text: string): number {
  const header = text.indexOf('\n') + 1;
  const delimiter = text.indexOf('\n', header) + 1;
  if (header === 0 || delimiter === 0 || !/^[ \t:|-]+$/.test(text.slice(header, delimiter - 1))) return 0;
  const row = text.indexOf('\n', delimiter) + 1;
  const length = row === 0 ? text.length : row;
  return length <= MOST_TABLE ? length : delimiter <= MOST_TABLE ? MOST_TABLE : 0;
}

/** Whether more of it would be shown than is parsed. */
export function isShortTable(block: Token | undefined): boolean {
  return block?.type === 'table' && (block as Tokens.Table).rows.length < ROWS_SHOWN;
}

/** Of a table that is longer than what is shown of it, the rest is counted and not parsed. */
export function longTable(blocks: readonly Token[], text: string): LongTable | null {
  const last = blocks.at(-1) as Tokens.Table | undefined;
  const from = blocks.slice(0, -1).reduce((sum, { raw }) => sum + raw.length, 0);
  if (last?.type !== 'table' || last.rows.length === 0 || !text.startsWith(last.raw, from)) return null;
  let rowCount = last.rows.length;
  let end = from + last.raw.length;
  while (end < text.length) {
    const next = text.indexOf('\n', end);
    const line = text.slice(end, next === -1 ? text.length : next);
    if (!line.includes('|')) break;
    rowCount += 1;
    end = next === -1 ? text.length : next + 1;
  }
  return { ...last, raw: text.slice(from, end), rowCount };
}
