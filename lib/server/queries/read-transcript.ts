import { AppError } from '@interlude/protocol/errors';
import { MAX_TURN_TEXT } from '@interlude/protocol/limits';
import { isPosition, type Position, positionToNumber } from '@interlude/protocol/position';
import { countRedacted } from '@interlude/protocol/projections/count-redacted';
import { textOfItems } from '@interlude/protocol/projections/item-draft';
import type { TranscriptPage, Turn } from '@interlude/protocol/read-models';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { TurnHeader } from '@interlude/protocol/turn-places';
import type { Row } from '@libsql/client';
import { sessions } from '@/db/schema';
import { sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { Sight } from '@/lib/server/access/sight';
import { asRead, type Query, query, readTogether } from './read-together';
import { byTurn, foldTurn, PIECE_BYTES, PIECE_EVENTS, readTurns } from './read-turns';
import { withoutSecrets } from './shown-entries';
import { ENTRY_COLUMNS, headerFromRow } from './turn-row';

export interface TranscriptRange {
  /** A turn's id or a position: the page ends before it. Null for the newest page. */
  before: string | null;
  /** Most turns. */
  limit: number;
}

const SESSION = shapeOf(sessions, 'places', 'body');

/** Approximate size of an item in a page, without its text. */
const ITEM_FRAME = 256;

/**
 * A page of turns in ascending order, whole: a turn is never cut at the edge of a page, but shows no more than its
 * newest items. A page holds fewer turns than asked for where they say more than a turn may. Its cost is that of the
 * page, however long the session is: both the turns and their events are ranges of an index.
 *
 * @returns null when there is no such session
 * @throws AppError `invalid_argument` when `before` is neither a position nor a turn of this session
 */
export async function readTranscript(
  sight: Sight,
  sessionId: string,
  { before, limit }: TranscriptRange,
): Promise<TranscriptPage | null> {
  const id = columnText(sessionId);
  const { position, found } = await readTogether(sight, pageQueries(sight, id, before, limit));
  // after the read: it counts from its creation
  const pace = new Yielder();
  const [, , , [isSmall = true], headers, entries] = found;
  if (!isSmall) return readLarge(sight, id, before, limit, pace);
  const page = headOf(position, found, before, limit);
  if (page === null) return null;
  const rows = byTurn(entries);
  const turns: Turn[] = [];
  for (const header of headers.reverse()) turns.push(await foldTurn(sight, header, rows.get(header.id) ?? [], pace));
  return pageOfTurns(sight, page, turns, pace);
}

/** The same for more than is read in one go: in one snapshot, with turns for others in between. */
async function readLarge(sight: Sight, sessionId: string, before: string | null, limit: number, pace: Yielder) {
  const snapshot = await sight.reader.transaction('read');
  try {
    const { position, found } = await readTogether(
      { ...sight, reader: snapshot },
      headQueries(sight, sessionId, before, limit),
    );
    const page = headOf(position, found, before, limit);
    if (page === null) return null;
    const turns: Turn[] = [];
    let text = 0;
    for await (const turn of readTurns(sight, snapshot, sessionId, page.turnIds, pace)) {
      text += namesIn(turn) + textOfItems(turn.items) + turn.items.length * ITEM_FRAME;
      if (turns.length > 0 && text > MAX_TURN_TEXT) return pageOfTurns(sight, { ...page, hasMore: true }, turns, pace);
      turns.unshift(turn);
    }
    return pageOfTurns(sight, page, turns, pace);
  } finally {
    snapshot.close();
  }
}

/** The size of a turn without its items: it may name thousands of messages and tasks. */
function namesIn({ userMessageIds, trigger }: TurnHeader): number {
  return JSON.stringify([userMessageIds, trigger]).length;
}

/** With how many secrets are left out of it, for a reader who is told none. */
async function pageOfTurns(
  sight: Sight,
  { head, hasMore }: { head: Omit<TranscriptPage, 'turns' | 'hasMore'>; hasMore: boolean },
  turns: Turn[],
  pace: Yielder,
): Promise<TranscriptPage> {
  const page = await withoutSecrets(sight, { turns }, { ...head, hasMore }, pace);
  return sight.redacts ? markRedacted({ ...page, redacted: countRedacted(turns) }) : page;
}

type Session = Pick<TranscriptPage, 'places' | 'removed'>;
type Head = [session: Session[], cursor: Row[], turnIds: string[], ...unknown[]];

function headOf(position: Position, [[session], cursor, turnIds]: Head, before: string | null, limit: number) {
  if (session === undefined) return null;
  const { places, ...told } = session;
  if (before !== null && cursor.length === 0 && !isPosition(before)) {
    throw new AppError(
      'invalid_argument',
      `before=${JSON.stringify(before)} is not a turn of this session. Use the position of the first turn you have.`,
      { details: { before } },
    );
  }
  return {
    head: { position, ...told, ...(before === null && { places }) },
    hasMore: turnIds.length > limit,
    /** The newest first. */
    turnIds: turnIds.slice(0, limit),
  };
}

/** A page of turns as a subquery, and its arguments. */
function pageOf(sessionId: string, before: string | null, limit: number) {
  // Anything that is neither a position nor a turn leaves the page empty.
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
  { scope }: Pick<Sight, 'scope'>,
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
    query(asRead, 'SELECT 1 FROM turns WHERE session_id = ?1 AND id = ?2', ...args.slice(0, 2)),
    query((row) => String(row.id), select('id'), ...args),
  ];
}

/** The same with the whole page, if it is small. */
function pageQueries(
  sight: Pick<Sight, 'scope'>,
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
    ...headQueries(sight, sessionId, before, limit),
    query((row) => Number(row.is_small) === 1, isSmall, ...args),
    query(headerFromRow, select('*', `?4 * (${isSmall})`), ...args),
    query(asRead, entries, ...args),
  ];
}
