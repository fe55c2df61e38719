import { positionFromNumber } from '@interlude/protocol/position';
import { ShownFold } from '@interlude/protocol/projections/items';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { settleTurn } from '@interlude/protocol/projections/transcript';
import type { Turn } from '@interlude/protocol/read-models';
import { EventRedactor } from '@interlude/protocol/redaction/event-redactor';
import { markRedacted, redactModel } from '@interlude/protocol/redaction/redact-model';
import { redactValue, type Tally } from '@interlude/protocol/redaction/redact-value';
import { LONG_TEXT, prepareTexts } from '@interlude/protocol/redaction/redacted-text';
import type { TurnHeader } from '@interlude/protocol/turn-places';
import type { Row } from '@libsql/client';
import type { Snapshot } from '@/db/reader';
import { events, turns } from '@/db/schema';
import { columnText, shapeOf, shapeWithout } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { ReadScope } from '@/lib/server/access/request-context';

/** Limits per read. Larger pages and turns are read in pieces. */
export const PIECE_EVENTS = 1_000;
export const PIECE_BYTES = 512 * 1024;
/** Minimum weight of an event, so that PIECE_BYTES also limits a piece to PIECE_EVENTS. */
const LEAST_EVENT_BYTES = Math.ceil(PIECE_BYTES / PIECE_EVENTS);
/** Turns weighed in one read. */
const WEIGHED_TURNS = 50;

/**
 * Reads turns in the given order. Each read fetches as many as fit into a piece, because it costs a round trip to a
 * remote database.
 */
export async function* readTurns(
  view: ReadScope,
  snapshot: Snapshot,
  sessionId: string,
  turnIds: readonly string[],
  yielder: Yielder,
): AsyncGenerator<Turn> {
  for (let index = 0; index < turnIds.length; index += WEIGHED_TURNS) {
    const weighed = await weigh(snapshot, sessionId, turnIds.slice(index, index + WEIGHED_TURNS));
    for (const { ids, weight } of piecesOf(weighed)) {
      const idArgs = [sessionId, JSON.stringify(ids)];
      const ofThese = 'IN (SELECT value FROM json_each(?2))';
      const isWhole = weight <= PIECE_BYTES;
      const [found, entries] = await snapshot.batch([
        { sql: `SELECT * FROM turns WHERE session_id = ?1 AND id ${ofThese}`, args: idArgs },
        ...(isWhole
          ? [
              {
                sql: `SELECT ${ENTRY_COLUMNS} FROM events
                  WHERE session_id = ?1 AND turn_id ${ofThese} ORDER BY turn_id, position`,
                args: idArgs,
              },
            ]
          : []),
      ]);
      const headers = new Map((found?.rows ?? []).map((row) => [String(row.id), headerFromRow(row)]));
      const rows = byTurn(entries?.rows ?? []);
      for (const id of ids) {
        const header = headers.get(id) as TurnHeader;
        yield isWhole
          ? await foldTurn(view, header, rows.get(id) ?? [], yielder)
          : await readTurn(view, snapshot, sessionId, header, yielder);
      }
      await yielder.yieldIfDue();
    }
  }
}

type Weighed = { id: string; weight: number };

/** Bytes to read for each turn; not exact above PIECE_BYTES. */
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

/** Groups adjacent turns into pieces. A turn above PIECE_BYTES gets its own piece. */
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

export async function foldTurn(
  view: ReadScope,
  header: TurnHeader,
  rows: readonly Row[],
  yielder: Yielder,
): Promise<Turn> {
  const fold = new ShownFold({ items: [] }, header.kind === 'none');
  await foldRows(fold, rows, new RedactedEntries(view), yielder);
  return finish(view, header, fold, yielder);
}

async function readTurn(
  view: ReadScope,
  snapshot: Snapshot,
  sessionId: string,
  header: TurnHeader,
  yielder: Yielder,
): Promise<Turn> {
  const turnId = columnText(header.id);
  const fold = new ShownFold({ items: [] }, header.kind === 'none');
  const entries = new RedactedEntries(view);
  let after = 0;
  for (;;) {
    const { rows: sizes } = await snapshot.execute({
      sql: `SELECT position, octet_length(payload) AS size FROM events
        WHERE session_id = ? AND turn_id = ? AND position > ? ORDER BY position LIMIT ${PIECE_EVENTS}`,
      args: [sessionId, turnId, after],
    });
    const upTo = endOfPiece(sizes);
    if (upTo === null) return finish(view, header, fold, yielder);
    const { rows } = await snapshot.execute({
      sql: `SELECT ${ENTRY_COLUMNS} FROM events
        WHERE session_id = ? AND turn_id = ? AND position > ? AND position <= ? ORDER BY position`,
      args: [sessionId, turnId, after, upTo],
    });
    await foldRows(fold, rows, entries, yielder);
    await yielder.yieldIfDue();
    after = upTo;
  }
}

async function foldRows(
  fold: ShownFold,
  rows: readonly Row[],
  entries: RedactedEntries,
  yielder: Yielder,
): Promise<void> {
  await entries.each(rows, yielder, (entry) => fold.apply(entry));
}

async function finish(
  { redacts }: Pick<ReadScope, 'redacts'>,
  header: TurnHeader,
  fold: ShownFold,
  yielder: Yielder,
): Promise<Turn> {
  for (const _ of fold.readArgs()) if (yielder.isDue) await yielder.yieldIfDue();
  const shown = redacts ? (redactValue(header, { redacted: 0 }, false) as TurnHeader) : header;
  return settleTurn({ ...shown, ...fold.shown() });
}

/** The last position that fits into a piece, which has at least one event; null after the last event. */
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

const TURN = shapeWithout(turns, 'sessionId');
const ENTRY = shapeOf(events, 'position', 'occurredAt', 'receivedAt', 'turnId', 'payload');

export const ENTRY_COLUMNS = ENTRY.columns();

export function headerFromRow(row: Row): TurnHeader {
  const { position, errorMessage, errorCode, inferred, ...header } = TURN.read(row);
  const error = errorMessage === null ? null : { message: errorMessage, code: errorCode };
  return { ...header, position: positionFromNumber(position), error, ...(inferred ? { inferred } : {}) };
}

export function entryFromRow(row: Row): EventEntry {
  const { position, occurredAt, receivedAt, payload } = ENTRY.read(row);
  return { position: positionFromNumber(position), occurredAt, receivedAt, event: payload };
}

/**
 * Redacts events before folding them, so a redacted reader's page equals a page that the reader folds from the stream.
 *
 * Ordering: takes rows in the order of the log.
 */
export class RedactedEntries {
  readonly #redactor: EventRedactor | null;
  readonly tally: Tally = { redacted: 0 };

  /** @param isWhole true if the rows hold every event of each message */
  constructor({ redacts }: Pick<ReadScope, 'redacts'>, isWhole = true) {
    this.#redactor = redacts ? new EventRedactor(isWhole) : null;
  }

  fromRow(row: Row): EventEntry {
    const entry = entryFromRow(row);
    if (this.#redactor === null) return entry;
    return { ...entry, event: this.#redactor.redact(entry.event, this.tally) };
  }

  /** Converts rows in order. Yields to the event loop, even within a long event. */
  async each(rows: Iterable<Row>, yielder: Yielder, fold: (entry: EventEntry) => void): Promise<void> {
    for (const row of rows) {
      if (this.#redactor !== null && String(row.payload).length >= LONG_TEXT) {
        await prepareTexts(entryFromRow(row).event, yielder.maybeYield);
      }
      fold(this.fromRow(row));
      if (yielder.isDue) await yielder.yieldIfDue();
    }
  }
}

/** Combines parts folded from redacted events with the other fields, which it redacts. */
export async function withRedacted<Folded extends object, Others extends object>(
  { redacts }: Pick<ReadScope, 'redacts'>,
  folded: Folded,
  others: Others,
  yielder = new Yielder(),
): Promise<Others & Folded & { redacted?: number }> {
  if (!redacts) return { ...others, ...folded };
  return markRedacted({ ...(await redactModel(others, yielder.maybeYield)), ...folded });
}
