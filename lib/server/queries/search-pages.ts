import { AppError } from '@interlude/protocol/errors';
import { MAX_INBOX_ID } from '@interlude/protocol/limits';
import { type LogFilter, searchesText } from '@interlude/protocol/projections/log-filter';
import { redactValue } from '@interlude/protocol/redaction/redact-value';
import { MARK_PREFIX } from '@interlude/protocol/redaction/secret-values';
import { Yielder } from '@/db/yield-to-loop';

/**
 * Searches for redacted readers, which match redacted text only. If the database matched stored text, a correct guess
 * of a secret would change the results, their count or the end of a page.
 */

/** Rows to search before a response ends with a cursor. Reveals nothing that readers can't count themselves. */
const MAX_SEARCHED = 2_000;
/** Rows per read. */
export const SEARCH_PAGE_ROWS = 250;

/**
 * The part of a log filter that the database may apply for a redacted reader: everything but text, and components only if
 * redaction leaves them unchanged.
 *
 * @returns the same filter if redaction does not affect it
 */
export function databaseFilter(filter: LogFilter): LogFilter {
  const isPlain = filter.components.every((name) => redacted(name) === name && !name.includes(MARK_PREFIX));
  if (isPlain && !searchesText(filter)) return filter;
  return { ...filter, terms: [], regex: null, components: isPlain ? filter.components : [] };
}

interface Listing<Page, Row> {
  /** Reads a page, ignoring the search words. */
  read(after: ListCursor | null): Promise<Page>;
  rowsOf(page: Page): readonly Row[];
  /** Returns the text of a redacted row to search, in lower case. */
  textOf(row: Row): string;
  cursorBehind(row: Row): string;
  groups: readonly string[];
}

/**
 * One page of the rows whose redacted text contains all words.
 *
 * @returns `page`: the first page that was read; `rows`: the matches, possibly fewer than `limit` after MAX_SEARCHED
 *   rows; `next`: null at the end of the list
 */
export async function searchRedacted<Page extends { next: string | null }, Row>(
  { read, rowsOf, textOf, cursorBehind, groups }: Listing<Page, Row>,
  words: readonly string[],
  { after, limit }: { after: ListCursor | null; limit: number },
): Promise<{ page: Page; rows: Row[]; next: string | null }> {
  const first = await read(after);
  const found: Row[] = [];
  const yielder = new Yielder();
  let searched = 0;
  for (let page = first; ; page = await read(cursorOf(page.next ?? '', groups))) {
    await yielder.each(rowsOf(page), (row) => {
      const text = textOf(redacted(row));
      if (words.every((word) => text.includes(word))) found.push(row);
    });
    searched += rowsOf(page).length;
    const last = found[limit - 1];
    if (found.length > limit && last !== undefined) {
      return { page: first, rows: found.slice(0, limit), next: cursorBehind(last) };
    }
    if (page.next === null || searched >= MAX_SEARCHED) return { page: first, rows: found, next: page.next };
  }
}

function redacted<Value>(value: Value): Value {
  return redactValue(value, { redacted: 0 }, false) as Value;
}

/** Counts rows by name. */
export function countsOf<Name extends string, Row>(
  counts: Record<Name, number>,
  rows: readonly Row[],
  nameOf: (row: Row) => Name,
): Record<Name, number> {
  const next = { ...counts };
  for (const name of Object.keys(counts) as Name[]) next[name] = rows.filter((row) => nameOf(row) === name).length;
  return next;
}

/** Matches the text of a cursor. The inbox has the longest ids of all lists. */
const CURSOR = new RegExp(`^([\\w-]+)\\.(\\d{1,16})\\.(.{1,${MAX_INBOX_ID}})$`, 's');

/** Cursor of the start of a list. */
export const LIST_START = '0';

/** A place in a paged list: after the row with this group, time and id. */
export interface ListCursor {
  group: string;
  at: number;
  id: string;
}

export function cursorText({ group, at, id }: ListCursor): string {
  return `${group}.${at}.${id}`;
}

/**
 * @returns null for the start
 * @throws AppError `invalid_argument` for an unknown cursor
 */
export function cursorOf(text: string, groups: readonly string[]): ListCursor | null {
  if (text === LIST_START) return null;
  const [, group = '', at = '', id = ''] = CURSOR.exec(text) ?? [];
  if (!groups.includes(group)) {
    const given = text.slice(0, 300);
    const message = `after=${JSON.stringify(given)} is invalid. Send 0, or the \`next\` of a response.`;
    throw new AppError('invalid_argument', message, { details: { after: given } });
  }
  return { group, at: Number(at), id };
}
