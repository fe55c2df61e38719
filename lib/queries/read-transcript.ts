import type { InStatement, Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import type { EventEntry } from '@/lib/projections/event-entry';
import { turnFromEvents } from '@/lib/projections/turn-page';
import { AppError } from '@/lib/protocol/errors';
import { isPosition, positionToNumber } from '@/lib/protocol/position';
import type { TranscriptPage } from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';
import { ENTRY_COLUMNS, entryFromRow, headerFromRow } from './turn-row';

export interface TranscriptRange {
  /** A turn's id or a position: the page ends before it. Null for the newest page. */
  before: string | null;
  /** Most turns. */
  limit: number;
}

/**
 * A page of turns in ascending order, whole: a turn is never cut at the edge of a page. Its cost is that of the page,
 * however long the session is: both the turns and their events are ranges of an index.
 *
 * @returns null when there is no such session
 * @throws AppError `invalid_argument` when `before` is neither a position nor a turn of this session
 */
export async function readTranscript(
  database: Database,
  sessionId: string,
  { before, limit }: TranscriptRange,
): Promise<TranscriptPage | null> {
  const [counter, session, cursor, turns, events] = await database.reader.batch(
    transcriptStatements(columnText(sessionId), before, limit),
    'read',
  );
  const row = session?.rows[0];
  if (row === undefined) return null;
  if (before !== null && cursor?.rows.length === 0 && !isPosition(before)) {
    throw new AppError(
      'invalid_argument',
      `before=${JSON.stringify(before)} is no turn of this session. Use the position of the first turn you have.`,
      { details: { before } },
    );
  }
  const headers = (turns?.rows ?? []).map(headerFromRow);
  const hasMore = headers.length > limit;
  const entries = byTurn(events?.rows ?? []);
  const page = headers.slice(0, limit).reverse();
  return {
    position: counterOf(counter),
    hasMore,
    turns: page.map((header) => turnFromEvents(header, entries.get(header.id) ?? [])),
    ...(before === null ? { places: JSON.parse(String(row.places)) } : {}),
  };
}

function transcriptStatements(sessionId: string, before: string | null, limit: number): InStatement[] {
  // What is neither a position nor a turn leaves the page empty.
  const fallback = before === null ? Number.MAX_SAFE_INTEGER : isPosition(before) ? positionToNumber(before) : 0;
  const turnId = before === null ? '' : columnText(before);
  const page = (columns: string) => `SELECT ${columns} FROM turns
    WHERE session_id = ?1 AND position < ifnull((SELECT position FROM turns WHERE session_id = ?1 AND id = ?2), ?3)
    ORDER BY position DESC LIMIT ?4`;
  return [
    COUNTER,
    { sql: 'SELECT places FROM sessions WHERE id = ?', args: [sessionId] },
    { sql: 'SELECT 1 FROM turns WHERE session_id = ? AND id = ?', args: [sessionId, turnId] },
    { sql: page('*'), args: [sessionId, turnId, fallback, limit + 1] },
    {
      sql: `SELECT ${ENTRY_COLUMNS} FROM events WHERE session_id = ?1 AND turn_id IN (SELECT id FROM (${page('id')}))
        ORDER BY turn_id, position`,
      args: [sessionId, turnId, fallback, limit],
    },
  ];
}

function byTurn(rows: readonly Row[]): Map<string, EventEntry[]> {
  const entries = new Map<string, EventEntry[]>();
  for (const row of rows) {
    const turnId = String(row.turn_id);
    const known = entries.get(turnId);
    if (known === undefined) entries.set(turnId, [entryFromRow(row)]);
    else known.push(entryFromRow(row));
  }
  return entries;
}
