import { ShownFold } from '@interlude/protocol/projections/items';
import { settleTurn } from '@interlude/protocol/projections/turn-page';
import type { Turn } from '@interlude/protocol/read-models';
import { redactValue } from '@interlude/protocol/redaction/redact-value';
import type { TurnHeader } from '@interlude/protocol/turn-places';
import type { Row } from '@libsql/client';
import type { Snapshot } from '@/db/reader';
import { columnText } from '@/db/table-rows';
import type { Yielder } from '@/db/yield-to-loop';
import type { Sight } from '@/lib/server/access/sight';
import { ShownEntries } from './shown-entries';
import { ENTRY_COLUMNS, headerFromRow } from './turn-row';

/** What is read in one go; a larger page is read in pieces of this size, and so is a turn that is larger itself. */
export const PIECE_EVENTS = 1_000;
export const PIECE_BYTES = 512 * 1024;
/** What an event counts for at least, so that a piece of so many bytes holds no more than so many events. */
const LEAST_EVENT_BYTES = Math.ceil(PIECE_BYTES / PIECE_EVENTS);
/** How many turns are weighed at once: others wait meanwhile. */
const WEIGHED_TURNS = 50;

/** These turns in this order, as many as fit a piece at once: each request to a database may take a while. */
export async function* readTurns(
  sight: Sight,
  snapshot: Snapshot,
  sessionId: string,
  turnIds: readonly string[],
  pace: Yielder,
): AsyncGenerator<Turn> {
  for (let at = 0; at < turnIds.length; at += WEIGHED_TURNS) {
    const weighed = await weigh(snapshot, sessionId, turnIds.slice(at, at + WEIGHED_TURNS));
    for (const { ids, weight } of piecesOf(weighed)) {
      const asked = [sessionId, JSON.stringify(ids)];
      const ofThese = 'IN (SELECT value FROM json_each(?2))';
      const isWhole = weight <= PIECE_BYTES;
      const [found, entries] = await snapshot.batch([
        { sql: `SELECT * FROM turns WHERE session_id = ?1 AND id ${ofThese}`, args: asked },
        ...(isWhole
          ? [
              {
                sql: `SELECT ${ENTRY_COLUMNS} FROM events
                  WHERE session_id = ?1 AND turn_id ${ofThese} ORDER BY turn_id, position`,
                args: asked,
              },
            ]
          : []),
      ]);
      const headers = new Map((found?.rows ?? []).map((row) => [String(row.id), headerFromRow(row)]));
      const rows = byTurn(entries?.rows ?? []);
      for (const id of ids) {
        const header = headers.get(id) as TurnHeader;
        yield isWhole
          ? await foldTurn(sight, header, rows.get(id) ?? [], pace)
          : await readTurn(sight, snapshot, sessionId, header, pace);
      }
      await pace.rest();
    }
  }
}

type Weighed = { id: string; weight: number };

/** What turns are to read, in bytes: beyond a piece it is only known that it is more. */
async function weigh(snapshot: Snapshot, sessionId: string, turnIds: readonly string[]): Promise<Weighed[]> {
  const { rows } = await snapshot.execute({
    sql: `SELECT id, octet_length(user_message_ids) + ifnull(octet_length(trigger), 0) + (
        SELECT total(max(size, ${LEAST_EVENT_BYTES})) FROM (
          SELECT octet_length(payload) AS size FROM events
          WHERE session_id = turns.session_id AND turn_id = turns.id LIMIT ${PIECE_EVENTS + 1})
      ) AS weight
      FROM turns WHERE session_id = ?1 AND id IN (SELECT value FROM json_each(?2))`,
    args: [sessionId, JSON.stringify(turnIds)],
  });
  const weights = new Map(rows.map(({ id, weight }) => [String(id), Number(weight)]));
  return turnIds.map((id) => ({ id, weight: weights.get(id) ?? 0 }));
}

/** Neighbours that are read in one go; what is more than a piece is alone. */
function piecesOf(turns: readonly Weighed[]): { ids: string[]; weight: number }[] {
  const pieces: { ids: string[]; weight: number }[] = [];
  for (const { id, weight } of turns) {
    const last = pieces.at(-1);
    if (last === undefined || last.weight + weight > PIECE_BYTES) pieces.push({ ids: [id], weight });
    else {
      last.ids.push(id);
      last.weight += weight;
    }
  }
  return pieces;
}

/** A turn of which all events are at hand. */
export async function foldTurn(sight: Sight, header: TurnHeader, rows: readonly Row[], pace: Yielder): Promise<Turn> {
  const fold = new ShownFold({ items: [] }, header.kind === 'none');
  await takeRows(fold, rows, new ShownEntries(sight), pace);
  return settled(sight, header, fold, pace);
}

async function readTurn(
  sight: Sight,
  snapshot: Snapshot,
  sessionId: string,
  header: TurnHeader,
  pace: Yielder,
): Promise<Turn> {
  const turnId = columnText(header.id);
  const fold = new ShownFold({ items: [] }, header.kind === 'none');
  const entries = new ShownEntries(sight);
  let after = 0;
  for (;;) {
    const { rows: sizes } = await snapshot.execute({
      sql: `SELECT position, octet_length(payload) AS size FROM events
        WHERE session_id = ? AND turn_id = ? AND position > ? ORDER BY position LIMIT ${PIECE_EVENTS}`,
      args: [sessionId, turnId, after],
    });
    const upTo = endOfPiece(sizes);
    if (upTo === null) return settled(sight, header, fold, pace);
    const { rows } = await snapshot.execute({
      sql: `SELECT ${ENTRY_COLUMNS} FROM events
        WHERE session_id = ? AND turn_id = ? AND position > ? AND position <= ? ORDER BY position`,
      args: [sessionId, turnId, after, upTo],
    });
    await takeRows(fold, rows, entries, pace);
    await pace.rest();
    after = upTo;
  }
}

async function takeRows(fold: ShownFold, rows: readonly Row[], entries: ShownEntries, pace: Yielder): Promise<void> {
  await entries.each(rows, pace, (entry) => fold.take(entry));
}

async function settled(
  { redacts }: Pick<Sight, 'redacts'>,
  header: TurnHeader,
  fold: ShownFold,
  pace: Yielder,
): Promise<Turn> {
  for (const _ of fold.readArgs()) if (pace.isDue) await pace.rest();
  const told = redacts ? (redactValue(header, { redacted: 0 }, false) as TurnHeader) : header;
  return settleTurn({ ...told, ...fold.shown() });
}

/** As many as fit a piece, at least one; null after the last. */
function endOfPiece(sizes: readonly Row[]): number | null {
  let bytes = 0;
  let end: number | null = null;
  for (const { position, size } of sizes) {
    bytes += Number(size);
    if (end !== null && bytes > PIECE_BYTES) break;
    end = Number(position);
  }
  return end;
}

export function byTurn(rows: readonly Row[]): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const row of rows) {
    const turnId = String(row.turn_id);
    const known = found.get(turnId);
    if (known === undefined) found.set(turnId, [row]);
    else known.push(row);
  }
  return found;
}
