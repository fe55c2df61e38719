import { type LogFilter, searchesText } from '@interlude/protocol/projections/log-filter';
import { redactValue } from '@interlude/protocol/redaction/redact-value';
import { MARK_BEGIN } from '@interlude/protocol/redaction/secret-span';
import { Yielder } from '@/db/yield-to-loop';
import { cursorOf, type ListCursor } from './list-cursor';

/**
 * Searches for redacted readers: they match what the reader is shown, and nothing else. If the database matched stored
 * text, then a right guess of a secret would change what is found, how much of it there is, or where a page ends.
 */

/** Rows that one answer looks through before it gives a cursor to go on from. The reader may count them anyway. */
const MOST_LOOKED = 2_000;
/** Rows of one read. */
export const LOOKED_AT_ONCE = 250;

/**
 * The part of a log filter that the database may judge for a redacted reader. A component that redaction leaves alone is
 * shown as it is stored; any other is compared as it is shown.
 *
 * @returns the same filter if there is nothing in it that redaction changes
 */
export function storedFilter(filter: LogFilter): LogFilter {
  const isPlain = filter.components.every((name) => shown(name) === name && !name.includes(MARK_BEGIN));
  if (isPlain && !searchesText(filter)) return filter;
  return { ...filter, terms: [], regex: null, components: isPlain ? filter.components : [] };
}

interface Listing<Page, Row> {
  /** Reads a page without the words of the search. */
  read(after: ListCursor | null): Promise<Page>;
  rowsOf(page: Page): readonly Row[];
  /** What a search looks into, of a row as it is shown. In lower case. */
  textOf(row: Row): string;
  cursorBehind(row: Row): string;
  /** The groups of its cursors. */
  groups: readonly string[];
}

/**
 * One page of the rows whose shown text has all the words.
 *
 * @returns the first page that was read, the rows found, and the cursor behind them: null at the end of the list. After
 *   `MOST_LOOKED` rows there may be fewer than `limit`, and the cursor says where to go on
 */
export async function searchShown<Page extends { next: string | null }, Row>(
  { read, rowsOf, textOf, cursorBehind, groups }: Listing<Page, Row>,
  words: readonly string[],
  { after, limit }: { after: ListCursor | null; limit: number },
): Promise<{ page: Page; rows: Row[]; next: string | null }> {
  const first = await read(after);
  const found: Row[] = [];
  const pace = new Yielder();
  let looked = 0;
  for (let page = first; ; page = await read(cursorOf(page.next ?? '', groups))) {
    await pace.each(rowsOf(page), (row) => {
      const text = textOf(shown(row));
      if (words.every((word) => text.includes(word))) found.push(row);
    });
    looked += rowsOf(page).length;
    const last = found[limit - 1];
    if (found.length > limit && last !== undefined) {
      return { page: first, rows: found.slice(0, limit), next: cursorBehind(last) };
    }
    if (page.next === null || looked >= MOST_LOOKED) return { page: first, rows: found, next: page.next };
  }
}

function shown<Value>(value: Value): Value {
  return redactValue(value, { redacted: 0 }, false) as Value;
}

/** How many of the rows have each of the names. */
export function countsOf<Name extends string, Row>(
  counts: Record<Name, number>,
  rows: readonly Row[],
  nameOf: (row: Row) => Name,
): Record<Name, number> {
  const next = { ...counts };
  for (const name of Object.keys(counts) as Name[]) next[name] = rows.filter((row) => nameOf(row) === name).length;
  return next;
}
