import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { inboxText } from '@interlude/protocol/list-search';
import { INBOX_KINDS, type InboxKind, noItems } from '@interlude/protocol/vocabulary';
import type { InValue, Row } from '@libsql/client';
import { INBOX_ROW, inboxItemFromRow } from '@/db/read-model-rows';
import { sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { ReadScope } from '@/lib/server/access/request-context';
import { type Query, query, rawRow, readSnapshot } from './read-snapshot';
import { countsOf, cursorText, type ListCursor, SEARCH_PAGE_ROWS, searchRedacted } from './search-pages';

interface InboxFilter {
  /** Matches any of these kinds; all if empty. */
  kinds: readonly InboxKind[];
  agentId: string | null;
  sessionId: string | null;
  /** In lower case. Each word must occur in the item, or in the names and texts of its session. */
  words: readonly string[];
}

export const WHOLE_INBOX: InboxFilter = { kinds: [], agentId: null, sessionId: null, words: [] };

/** Rows per page of the dashboard. */
export const ITEMS_IN_PAGE = 100;
const MAX_COUNTED = 100_000;

const COLUMNS = INBOX_ROW.columns('i');

/** One page of open items, in the order of INBOX_KINDS, and oldest first. */
export async function readInbox(
  view: ReadScope,
  { after, limit }: { after: ListCursor | null; limit: number },
  filter: InboxFilter = WHOLE_INBOX,
): Promise<InboxList> {
  const kinds = INBOX_KINDS.filter((kind) => filter.kinds.length === 0 || filter.kinds.includes(kind));
  const from = after === null ? 0 : INBOX_KINDS.indexOf(after.group as InboxKind);
  const where = sessionsIn(view.scope, 'i.session_id', 'i.agent_id');
  const wanted = kinds.filter((kind) => INBOX_KINDS.indexOf(kind) >= from);
  const { position, found } = await readSnapshot<(number | Row)[]>(view, [
    ...kinds.map((kind) => countOf(kind, filter, where)),
    ...wanted.map((kind) => oldest(kind, filter, where, kind === after?.group ? after : null, limit + 1)),
  ]);
  const counts = noItems();
  for (const [index, kind] of kinds.entries()) counts[kind] = (found[index]?.[0] as number | undefined) ?? 0;
  const rows = (found.slice(kinds.length) as Row[][]).flat();
  const items = await new Yielder().map(rows.slice(0, limit), inboxItemFromRow);
  const last = items.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return { position, items, next: hasMore ? cursorBehind(last) : null, counts };
}

function cursorBehind({ kind, since, id }: InboxItem): string {
  return cursorText({ group: kind, at: since, id });
}

/** `readInbox` with search words. A redacted reader searches the redacted items, and `counts` counts the page only. */
export async function searchInbox(
  view: ReadScope,
  place: { after: ListCursor | null; limit: number },
  filter: InboxFilter,
): Promise<InboxList> {
  const { words } = filter;
  if (!view.redacts || words.length === 0) return readInbox(view, place, filter);
  const listing = {
    read: (after: ListCursor | null) => readInbox(view, { after, limit: SEARCH_PAGE_ROWS }, { ...filter, words: [] }),
    rowsOf: ({ items }: InboxList) => items,
    textOf: inboxText,
    cursorBehind,
    groups: INBOX_KINDS,
  };
  const { page, rows: items, next } = await searchRedacted<InboxList, InboxItem>(listing, words, place);
  return { position: page.position, items, next, counts: countsOf(page.counts, items, ({ kind }) => kind) };
}

function oldest(
  kind: InboxKind,
  filter: InboxFilter,
  where: string,
  after: ListCursor | null,
  limit: number,
): Query<Row> {
  const { sql, args } = conditionOf(kind, filter);
  const place = after === null ? '' : 'AND (i.since, i.id) > (?, ?)';
  const text = `SELECT ${COLUMNS} FROM inbox AS i WHERE ${sql} AND ${where} ${place} ORDER BY i.since, i.id LIMIT ?`;
  return query(rawRow, text, ...args, ...(after === null ? [] : [after.at, columnText(after.id)]), limit);
}

function countOf(kind: InboxKind, filter: InboxFilter, where: string): Query<number> {
  const { sql, args } = conditionOf(kind, filter);
  const text = `SELECT count(*) AS count FROM (SELECT 1 FROM inbox AS i WHERE ${sql} AND ${where} LIMIT ${MAX_COUNTED})`;
  return query((row) => Number(row.count), text, ...args);
}

function conditionOf(kind: InboxKind, { agentId, sessionId, words }: InboxFilter) {
  const args: InValue[] = [kind];
  let sql = 'i.done_at IS NULL AND i.kind = ?';
  for (const [column, id] of [['agent_id', agentId] as const, ['session_id', sessionId] as const]) {
    if (id === null) continue;
    sql += ` AND i.${column} = ?`;
    args.push(columnText(id));
  }
  for (const word of words) {
    sql += ` AND (instr(i.words, ?) > 0
      OR EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = i.session_id AND instr(s.words, ?) > 0))`;
    args.push(columnText(word), columnText(word));
  }
  return { sql, args };
}
