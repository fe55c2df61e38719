import { AppError } from '@interlude/protocol/errors';
import { MAX_TURN_TEXT } from '@interlude/protocol/limits';
import { isPosition, type Position, positionToNumber } from '@interlude/protocol/position';
import { itemsTextLength } from '@interlude/protocol/projections/item-draft';
import { countRedacted } from '@interlude/protocol/projections/transcript';
import type { TranscriptPage, Turn, TurnAt } from '@interlude/protocol/read-models';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { TurnHeader } from '@interlude/protocol/turn-places';
import type { Row } from '@libsql/client';
import { sessions, tasks, turns } from '@/db/schema';
import { sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { ReadScope } from '@/lib/server/access/request-context';
import { type Query, query, rawRow, readSnapshot } from './read-snapshot';
import {
  byTurn,
  ENTRY_COLUMNS,
  foldTurn,
  headerFromRow,
  PIECE_BYTES,
  PIECE_EVENTS,
  readTurns,
  withRedacted,
} from './read-turns';

export interface TranscriptRange {
  /** The page ends before this turn id or position. Null for the newest page. */
  before: string | null;
  limit: number;
}

const SESSION = shapeOf(sessions, 'places', 'body');

/** Approximate size of an item without its text. */
const ITEM_FRAME = 256;

/**
 * A page of whole turns in ascending order, each with its newest items. A page with a lot of text holds fewer turns. Turns
 * and events are index ranges, so the cost depends on the page, not on the length of the session.
 *
 * @returns null for an unknown session
 * @throws AppError `invalid_argument` when `before` is neither a position nor a turn of this session
 */
export async function readTranscript(
  view: ReadScope,
  sessionId: string,
  { before, limit }: TranscriptRange,
): Promise<TranscriptPage | null> {
  const id = columnText(sessionId);
  const { position, found } = await readSnapshot(view, pageQueries(view, id, before, limit));
  // Created here, because a yielder measures time from its creation.
  const yielder = new Yielder();
  const [, , , [isSmall = true], headers, entries] = found;
  if (!isSmall) return readLarge(view, id, before, limit, yielder);
  const page = pageHead(position, found, before, limit);
  if (page === null) return null;
  const rows = byTurn(entries);
  const turns: Turn[] = [];
  for (const header of headers.reverse()) turns.push(await foldTurn(view, header, rows.get(header.id) ?? [], yielder));
  return pageOfTurns(view, page, turns, yielder);
}

/** Reads a large page: one snapshot and many reads, yielding in between. */
async function readLarge(view: ReadScope, sessionId: string, before: string | null, limit: number, yielder: Yielder) {
  const snapshot = await view.reader.transaction('read');
  try {
    const { position, found } = await readSnapshot(
      { ...view, reader: snapshot },
      headQueries(view, sessionId, before, limit),
    );
    const page = pageHead(position, found, before, limit);
    if (page === null) return null;
    const turns: Turn[] = [];
    let text = 0;
    for await (const turn of readTurns(view, snapshot, sessionId, page.turnIds, yielder)) {
      text += namesIn(turn) + itemsTextLength(turn.items) + turn.items.length * ITEM_FRAME;
      if (turns.length > 0 && text > MAX_TURN_TEXT)
        return pageOfTurns(view, { ...page, hasMore: true }, turns, yielder);
      turns.unshift(turn);
    }
    return pageOfTurns(view, page, turns, yielder);
  } finally {
    snapshot.close();
  }
}

/** Size of a turn's header, which may name thousands of messages and tasks. */
function namesIn({ userMessageIds, trigger }: TurnHeader): number {
  return JSON.stringify([userMessageIds, trigger]).length;
}

async function pageOfTurns(
  view: ReadScope,
  { head, hasMore }: { head: Omit<TranscriptPage, 'turns' | 'hasMore'>; hasMore: boolean },
  turns: Turn[],
  yielder: Yielder,
): Promise<TranscriptPage> {
  const page = await withRedacted(view, { turns }, { ...head, hasMore }, yielder);
  return view.redacts ? markRedacted({ ...page, redacted: countRedacted(turns) }) : page;
}

type Session = Pick<TranscriptPage, 'places' | 'removed'>;
type Head = [session: Session[], cursor: Row[], turnIds: string[], ...unknown[]];

function pageHead(position: Position, [[session], cursor, turnIds]: Head, before: string | null, limit: number) {
  if (session === undefined) return null;
  const { places, ...rest } = session;
  if (before !== null && cursor.length === 0 && !isPosition(before)) {
    throw new AppError(
      'invalid_argument',
      `before=${JSON.stringify(before)} is not a turn of this session. Use the position of the first turn you have.`,
      { details: { before } },
    );
  }
  return {
    head: { position, ...rest, ...(before === null && { places }) },
    hasMore: turnIds.length > limit,
    /** Newest first. */
    turnIds: turnIds.slice(0, limit),
  };
}

/** A subquery of a page's turns, with its arguments. */
function pageOf(sessionId: string, before: string | null, limit: number) {
  // `before` is neither a position nor a turn, so the page is empty.
  const fallback = before === null ? Number.MAX_SAFE_INTEGER : isPosition(before) ? positionToNumber(before) : 0;
  const select = (columns: string, most = '?4') => `SELECT ${columns} FROM turns
    WHERE session_id = ?1 AND position < ifnull((SELECT position FROM turns WHERE session_id = ?1 AND id = ?2), ?3)
    ORDER BY position DESC LIMIT ${most}`;
  return { select, args: [sessionId, before === null ? '' : columnText(before), fallback, limit] };
}

function sessionFromRow(row: Row): Session {
  const {
    places,
    body: { removed },
  } = SESSION.read(row);
  return { places, ...(removed && { removed }) };
}

function headQueries(
  { scope }: Pick<ReadScope, 'scope'>,
  sessionId: string,
  before: string | null,
  limit: number,
): [Query<Session>, Query<Row>, Query<string>] {
  const { select, args } = pageOf(sessionId, before, limit + 1);
  return [
    query(
      sessionFromRow,
      `SELECT ${SESSION.columns()} FROM sessions WHERE id = ? AND ${sessionsIn(scope, 'id')}`,
      sessionId,
    ),
    query(rawRow, 'SELECT 1 FROM turns WHERE session_id = ?1 AND id = ?2', ...args.slice(0, 2)),
    query((row) => String(row.id), select('id'), ...args),
  ];
}

/** Reads the turns of a small page together with their events. */
function pageQueries(
  view: Pick<ReadScope, 'scope'>,
  sessionId: string,
  before: string | null,
  limit: number,
): [...ReturnType<typeof headQueries>, Query<boolean>, Query<TurnHeader>, Query<Row>] {
  const { select, args } = pageOf(sessionId, before, limit);
  const ofPage = `session_id = ?1 AND turn_id IN (SELECT id FROM (${select('id')}))`;
  const names = select('octet_length(user_message_ids) + ifnull(octet_length(trigger), 0) AS size');
  const isSmall = `SELECT count(*) <= ${PIECE_EVENTS}
      AND total(size) + (SELECT total(size) FROM (${names})) <= ${PIECE_BYTES} AS is_small
    FROM (SELECT octet_length(payload) AS size FROM events WHERE ${ofPage} LIMIT ${PIECE_EVENTS + 1})`;
  const entries = `SELECT ${ENTRY_COLUMNS} FROM events WHERE ${ofPage} AND (${isSmall}) ORDER BY turn_id, position`;
  return [
    ...headQueries(view, sessionId, before, limit),
    query((row) => Number(row.is_small) === 1, isSmall, ...args),
    query(headerFromRow, select('*', `?4 * (${isSmall})`), ...args),
    query(rawRow, entries, ...args),
  ];
}

const TURN = shapeOf(turns, 'id', 'endedAt');
const TASK = shapeOf(tasks, 'id');

/** Turns to search backwards for one that overlaps later ones. */
const MAX_TURNS = 32;
const MAX_TASKS = 64;

/**
 * The turn and tasks that ran at a time of the agent's clock; without a running turn, the last one that started before.
 * Items outside turns don't count, because they are not work, and some have the server's time. Reads only covering
 * indexes.
 *
 * @returns null for an unknown session
 */
export async function readTurnAt(view: ReadScope, sessionId: string, at: number): Promise<TurnAt | null> {
  const session = columnText(sessionId);
  const { position, found } = await readSnapshot(view, [
    query(rawRow, `SELECT 1 FROM sessions WHERE id = ? AND ${sessionsIn(view.scope, 'id')}`, session),
    query(
      TURN.read,
      `SELECT ${TURN.columns()} FROM turns WHERE session_id = ? AND kind <> 'none' AND started_at <= ?
        ORDER BY started_at DESC, position DESC LIMIT ?`,
      session,
      at,
      MAX_TURNS,
    ),
    query(
      TASK.read,
      `SELECT ${TASK.columns()} FROM tasks WHERE session_id = ?1 AND started_at <= ?2 AND ifnull(ended_at, ?2) >= ?2
        ORDER BY started_at DESC LIMIT ?3`,
      session,
      at,
      MAX_TASKS,
    ),
  ]);
  const [known, started, ran] = found;
  if (known.length === 0) return null;
  const running = started.find(({ endedAt }) => endedAt === null || endedAt >= at);
  const turn = running ?? started[0];
  return {
    position,
    turnId: turn?.id ?? null,
    running: running !== undefined,
    taskIds: ran.map(({ id }) => id),
  };
}
