import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import { withInterlude } from '@interlude/protocol/interlude-metadata';
import { stringifyWellFormed } from '@interlude/protocol/json';
import { OutputDraft } from '@interlude/protocol/task-output';
import { utf8Length } from '@interlude/protocol/text';
import type { InStatement } from '@libsql/client';
import { chunkStatements, MAX_ARGUMENT_BYTES, runStatements } from '@/db/json-statements';
import type { ResultRows } from '@/db/reader';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { Yielder } from '@/db/yield-to-loop';
import type { EventRow, StoredFold } from './batch-rows';

/**
 * Deltas of a streamed message fold into a single row once the message is complete.
 *
 * ```
 *  before   41 START   42 Δ"Hel"   45 Δ"lo"            47 END
 *  after    41 START               45 "Hello" (whole)  47 END
 * ```
 *
 * Ordering: the row keeps the position of the last delta and is marked `whole`. A reader that resumes within the
 * message receives the row and replaces its text. A reader past the row has the whole message.
 * Failure: folding is part of the batch's transaction, so no reader ever sees a message with some deltas missing.
 */

/** The last delta's event with the whole text, which replaces a reader's text. */
export function wholeEvent(event: AgUiEvent, text: string): AgUiEvent {
  return { ...withInterlude(event, { whole: true }), delta: text };
}

export function appendDelta(text: string, event: AgUiEvent): string {
  const delta = typeof event.delta === 'string' ? event.delta : '';
  return fieldsOf(event.metadata?.interlude).whole === true ? delta : text + delta;
}

/** A text whose JSON is too long stays in its deltas, because a row must fit into one argument of a libSQL server. */
export function isFoldable(text: string): boolean {
  // as JSON a UTF-16 unit takes at most 6 bytes
  return text.length * 6 <= MAX_FOLDED_BYTES || utf8Length(JSON.stringify(text)) <= MAX_FOLDED_BYTES;
}

const MAX_FOLDED_BYTES = MAX_ARGUMENT_BYTES / 2;

/** Rows of a session to search in one query for the deltas of one message. */
const ROWS_AT_ONCE = 4_000;

interface StoredDeltas {
  positions: number[];
  text: string;
  /** JSON size of the rows. */
  bytes: number;
  last: AgUiEvent | null;
}

/** Returns the statements that fold the stored deltas. Sets the text of `into`, which must not be written yet. */
export async function foldStoredDeltas(transaction: WriteTransaction, folds: StoredFold[]): Promise<InStatement[]> {
  if (folds.length === 0) return [];
  const first = folds.map((fold) => selectDeltas(fold, fold.fromPosition));
  const results = await runStatements(transaction, first.flat());
  const statements: InStatement[] = [];
  let at = 0;
  for (const [index, fold] of folds.entries()) {
    const count = first[index]?.length ?? 0;
    const stored = await readDeltas(transaction, fold, results.slice(at, at + count));
    if (stored !== null) for (const statement of foldOne(fold, stored)) statements.push(statement);
    at += count;
  }
  return statements;
}

/** @returns null, without reading further, if the deltas are too long together */
async function readDeltas(
  transaction: WriteTransaction,
  fold: StoredFold,
  first: ResultRows[],
): Promise<StoredDeltas | null> {
  const stored: StoredDeltas = { positions: [], text: '', bytes: 0, last: null };
  for (let [deltas, rest] = first; ; ) {
    for (const { position, payload } of deltas?.rows ?? []) {
      if (payload === null) return null;
      const event: AgUiEvent = JSON.parse(String(payload));
      stored.positions.push(Number(position));
      stored.text = appendDelta(stored.text, event);
      stored.bytes += String(payload).length;
      stored.last = event;
    }
    if (stored.bytes > MAX_FOLDED_BYTES) return null;
    const next = rest?.rows[0];
    if (next === undefined) return stored;
    [deltas, rest] = await runStatements(transaction, selectDeltas(fold, Number(next.position)));
  }
}

const OF_SESSION = 'session_id = ?1 AND position >= ?2 AND position <= ?3';

/** Omits the payloads if the deltas are too large together. */
const SELECT_DELTAS = `SELECT position, iif(SUM(size) OVER () <= ?6, payload, NULL) AS payload FROM (
    SELECT e.position, e.payload, octet_length(e.payload) AS size FROM (
      SELECT position, type, entity_id FROM events WHERE ${OF_SESSION} ORDER BY position LIMIT ${ROWS_AT_ONCE}
    ) AS some CROSS JOIN events AS e ON e.position = some.position WHERE some.type = ?4 AND some.entity_id = ?5
  ) ORDER BY position`;

/** Start of the next slice. */
const SELECT_REST = `SELECT position FROM events WHERE ${OF_SESSION} ORDER BY position LIMIT 1 OFFSET ${ROWS_AT_ONCE}`;

function selectDeltas({ sessionId, upToPosition, type, entityId }: StoredFold, from: number): InStatement[] {
  const args = [sessionId, from, upToPosition];
  const deltas = { sql: SELECT_DELTAS, args: [...args, type, columnText(entityId), MAX_FOLDED_BYTES] };
  return upToPosition - from < ROWS_AT_ONCE ? [deltas] : [deltas, { sql: SELECT_REST, args }];
}

function foldOne({ into, deltaCount }: StoredFold, { positions, text: stored, last }: StoredDeltas): InStatement[] {
  if (positions.length + deltaCount < 2) return [];
  const text = into === null ? stored : appendDelta(stored, into.event);
  if (!isFoldable(text)) return [];
  if (into !== null) {
    into.event = wholeEvent(into.event, text);
    return deletions(positions);
  }
  if (last === null) return [];
  const payload = stringifyWellFormed(wholeEvent(last, text));
  return [
    { sql: 'UPDATE events SET payload = ? WHERE position = ?', args: [payload, positions.at(-1) as number] },
    ...deletions(positions.slice(0, -1)),
  ];
}

function deletions(positions: number[]): InStatement[] {
  const sql = 'DELETE FROM events WHERE position IN (SELECT value FROM json_each(?))';
  return [...chunkStatements(positions, sql)];
}

const MIN_ROWS = 32;
const MIN_BYTES = 1024 * 1024;
/** Maximum JSON and rows that one batch folds. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
const MAX_BATCH_ROWS = 20_000;

/**
 * Folds stored task output. Output arrives in many events, and only its newest text is kept. Once enough events of a
 * task are stored, they fold into one row.
 *
 * Ordering: as for deltas, the row keeps the position of the last event and is marked `whole`.
 * Failure: part of the batch's transaction. If the batch has already folded enough, a task is folded after its next
 * output.
 *
 * @param events the new events of the batch, whose tasks are folded; these events stay as they are
 */
export async function foldStoredOutputs(transaction: WriteTransaction, events: readonly EventRow[]): Promise<void> {
  const touched = new Map<string, [sessionId: string, task: string]>();
  for (const { event, sessionId, entityId } of events) {
    if (event.name !== CUSTOM.taskOutput || entityId === null) continue;
    touched.set(JSON.stringify([sessionId, entityId]), [columnText(sessionId), entityId]);
  }
  if (touched.size === 0) return;
  const results = await runStatements(transaction, chunkStatements(touched.values(), SELECT_FOLDABLE));
  const yielder = new Yielder();
  const room = { bytes: MAX_BATCH_BYTES, rows: MAX_BATCH_ROWS };
  for (const { session_id, task, pieces, bytes } of results.flatMap(({ rows }) => rows)) {
    if (room.bytes <= 0 || room.rows <= 0) return;
    room.bytes -= Number(bytes);
    room.rows -= Number(pieces);
    await foldOutput(transaction, String(session_id), String(task), yielder);
  }
}

const OF_TASK = `INDEXED BY events_of_output WHERE session_id = ?1 AND entity_id = ?2 AND name = 'task:output'`;

/** Tasks with enough output to fold. */
const SELECT_FOLDABLE = `SELECT e.session_id AS session_id, e.entity_id AS task, count(*) AS pieces,
    sum(octet_length(e.payload)) AS bytes
  FROM json_each(?1) AS wanted CROSS JOIN events AS e INDEXED BY events_of_output
    ON e.session_id = wanted.value->>0 AND e.entity_id = wanted.value->>1 AND e.name = 'task:output'
  GROUP BY e.session_id, e.entity_id HAVING pieces > 1 AND (pieces >= ${MIN_ROWS} OR bytes >= ${MIN_BYTES})`;

async function foldOutput(
  transaction: WriteTransaction,
  sessionId: string,
  task: string,
  yielder: Yielder,
): Promise<void> {
  const draft = new OutputDraft(null);
  let last: { at: number; event: AgUiEvent } | null = null;
  // Reads page by page, because an agent may send any number of output events.
  for (let after = 0; ; after = (last as { at: number }).at) {
    const { rows } = await transaction.execute({
      sql: `SELECT position, occurred_at, payload FROM events ${OF_TASK} AND position > ?3 ORDER BY position LIMIT ${PAGE}`,
      args: [sessionId, task, after],
    });
    for (const { position, occurred_at, payload } of rows) {
      const event: AgUiEvent = JSON.parse(String(payload));
      draft.add(event, Number(occurred_at));
      last = { at: Number(position), event };
      if (yielder.isDue) await yielder.yieldIfDue();
    }
    if (rows.length < PAGE) break;
  }
  if (last === null) return;
  const { text, from, to, redacted, ended, error, written_at, ...about } = fieldsOf(last.event.value);
  const value = { ...about, output: draft.result() };
  const payload = stringifyWellFormed({ ...withInterlude(last.event, { whole: true }), value });
  await transaction.execute({ sql: 'UPDATE events SET payload = ? WHERE position = ?', args: [payload, last.at] });
  await transaction.execute({
    sql: `DELETE FROM events ${OF_TASK} AND position < ?3`,
    args: [sessionId, task, last.at],
  });
}

const PAGE = 500;
