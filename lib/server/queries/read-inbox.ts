import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { inboxText } from '@interlude/protocol/list-search';
import type { InboxQuery } from '@interlude/protocol/queries';
import { INBOX_KINDS, type InboxKind, noItems } from '@interlude/protocol/vocabulary';
import type { InValue, Row } from '@libsql/client';
import { inboxColumns, inboxItemFromRow } from '@/db/read-model-rows';
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

interface InboxPlace {
  after: ListCursor | null;
  limit: number;
  /** `owner`: a page of sessions and agents, each with all of its items. */
  by?: InboxQuery['by'];
}

/** Rows per page of the dashboard. */
export const ITEMS_IN_PAGE = 100;
const MAX_COUNTED = 100_000;
/** Items listed per session or agent. */
const MAX_OF_OWNER = 500;

/** One page of open items, in the order of INBOX_KINDS, and oldest first. */
export async function readInbox(
  view: ReadScope,
  { after, limit, by = 'item' }: InboxPlace,
  filter: InboxFilter = WHOLE_INBOX,
): Promise<InboxList> {
  const kinds = INBOX_KINDS.filter((kind) => filter.kinds.length === 0 || filter.kinds.includes(kind));
  const from = after === null ? 0 : INBOX_KINDS.indexOf(after.group as InboxKind);
  const where = sessionsIn(view.scope, 'i.session_id', 'i.agent_id');
  const wanted = kinds.filter((kind) => INBOX_KINDS.indexOf(kind) >= from);
  const read = by === 'owner' ? ofOwners : oldest;
  const { position, found } = await readSnapshot<(number | Row)[]>(view, [
    ...kinds.map((kind) => countOf(kind, filter, where)),
    ...wanted.map((kind) => read(kind, kinds, filter, where, kind === after?.group ? after : null, limit + 1)),
  ]);
  const counts = noItems();
  for (const [index, kind] of kinds.entries()) counts[kind] = (found[index]?.[0] as number | undefined) ?? 0;
  const rows = (found.slice(kinds.length) as Row[][]).flat();
  if (by === 'owner') return { position, ...(await pageOfOwners(rows, limit)), counts };
  const items = await new Yielder().map(rows.slice(0, limit), inboxItemFromRow);
  const last = items.at(-1);
  return { position, items, next: rows.length > limit && last !== undefined ? cursorBehind(last) : null, counts };
}

/** @param rows sorted by their owner’s first item (`lead`), with one owner beyond the limit if there are more */
async function pageOfOwners(rows: readonly Row[], limit: number): Promise<Pick<InboxList, 'items' | 'next'>> {
  const leads = [...new Set(rows.map(({ lead }) => String(lead)))];
  const listed = new Set(leads.slice(0, limit));
  const items = await new Yielder().map(
    rows.filter(({ lead }) => listed.has(String(lead))),
    inboxItemFromRow,
  );
  const last = items.find(({ id }) => id === leads[limit - 1]);
  return { items, next: leads.length > limit && last !== undefined ? cursorBehind(last) : null };
}

function cursorBehind({ kind, since, id }: InboxItem): string {
  return cursorText({ group: kind, at: since, id });
}

/** `readInbox` with search words. A redacted reader searches the redacted items, and `counts` counts the page only. */
export async function searchInbox(view: ReadScope, place: InboxPlace, filter: InboxFilter): Promise<InboxList> {
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
  _kinds: readonly InboxKind[],
  filter: InboxFilter,
  where: string,
  after: ListCursor | null,
  limit: number,
): Query<Row> {
  const { sql, args } = conditionOf('i', [kind], filter);
  const text = `SELECT ${inboxColumns('i')} FROM inbox AS i WHERE ${sql} AND ${where} ${behind(after)}
    ORDER BY i.since, i.id LIMIT ?`;
  return query(rawRow, text, ...args, ...placeOf(after), limit);
}

/** The items of the owners whose first matching item is of this kind. `lead`: the id of that item. */
function ofOwners(
  kind: InboxKind,
  kinds: readonly InboxKind[],
  filter: InboxFilter,
  where: string,
  after: ListCursor | null,
  limit: number,
): Query<Row> {
  const own = conditionOf('i', [kind], filter);
  const isOwners = 'o.session_id IS i.session_id AND o.agent_id = i.agent_id';
  const same = conditionOf('o', [kind], filter);
  const urgent = kinds.slice(0, kinds.indexOf(kind));
  const other = conditionOf('o', urgent, filter);
  const hasEarlier = `EXISTS (SELECT 1 FROM inbox AS o WHERE ${isOwners} AND ${same.sql} AND (o.since, o.id) < (i.since, i.id))`;
  const hasMoreUrgent = `EXISTS (SELECT 1 FROM inbox AS o WHERE ${isOwners} AND ${other.sql})`;
  const leads = `SELECT i.id, i.since, i.agent_id, i.session_id FROM inbox AS i WHERE ${own.sql} AND ${where} ${behind(after)}
    AND NOT ${hasEarlier} ${urgent.length === 0 ? '' : `AND NOT ${hasMoreUrgent}`} ORDER BY i.since, i.id LIMIT ?`;
  const newest = `SELECT id FROM inbox AS o WHERE ${isOwners.replaceAll('i.', 'l.')} AND o.done_at IS NULL
    ORDER BY o.since DESC LIMIT ${MAX_OF_OWNER}`;
  const text = `SELECT l.id AS lead, ${inboxColumns('i')} FROM (${leads}) AS l
    CROSS JOIN inbox AS i ON i.id IN (SELECT l.id UNION SELECT id FROM (${newest})) ORDER BY l.since, l.id, i.since, i.id`;
  const args = [...own.args, ...placeOf(after), ...same.args, ...(urgent.length === 0 ? [] : other.args), limit];
  return query(rawRow, text, ...args);
}

const behind = (after: ListCursor | null) => (after === null ? '' : 'AND (i.since, i.id) > (?, ?)');
const placeOf = (after: ListCursor | null): InValue[] => (after === null ? [] : [after.at, columnText(after.id)]);

function countOf(kind: InboxKind, filter: InboxFilter, where: string): Query<number> {
  const { sql, args } = conditionOf('i', [kind], filter);
  const text = `SELECT count(*) AS count FROM (SELECT 1 FROM inbox AS i WHERE ${sql} AND ${where} LIMIT ${MAX_COUNTED})`;
  return query((row) => Number(row.count), text, ...args);
}

/** @param as alias of the inbox */
function conditionOf(as: string, kinds: readonly InboxKind[], { agentId, sessionId, words }: InboxFilter) {
  const args: InValue[] = [...kinds];
  let sql = `${as}.done_at IS NULL AND ${as}.kind ${kinds.length === 1 ? '= ?' : `IN (${kinds.map(() => '?').join(', ')})`}`;
  for (const [column, id] of [['agent_id', agentId] as const, ['session_id', sessionId] as const]) {
    if (id === null) continue;
    sql += ` AND ${as}.${column} = ?`;
    args.push(columnText(id));
  }
  for (const word of words) {
    sql += ` AND (instr(${as}.words, ?) > 0
      OR EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = ${as}.session_id AND instr(s.words, ?) > 0))`;
    args.push(columnText(word), columnText(word));
  }
  return { sql, args };
}
