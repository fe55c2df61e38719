import type { InStatement, Row } from '@libsql/client';
import { columnText } from '@/db/column-text';
import type { WriteTransaction } from '@/db/write-queue';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import type { StoredFold } from './batch-rows';

/**
 * A message that streamed leaves one row, not one per delta.
 *
 * Ordering: the one row stands where the last delta stood, and says `whole`. Whoever resumes from the middle of the
 * message gets the row, because it lies ahead, and replaces what text it had; whoever has read past it has everything.
 * Failure: folding is part of the batch's transaction, so no reader ever sees a message with some deltas gone.
 */

/** `event` with the text of all deltas before it: replace, don't append. */
export function wholeEvent(event: AgUiEvent, text: string): AgUiEvent {
  const metadata = isObject(event.metadata) ? event.metadata : {};
  const interlude = isObject(metadata.interlude) ? metadata.interlude : {};
  return { ...event, delta: text, metadata: { ...metadata, interlude: { ...interlude, whole: true } } };
}

/** The text after `delta` arrived. */
export function appendDelta(text: string, event: AgUiEvent): string {
  const delta = typeof event.delta === 'string' ? event.delta : '';
  const interlude = event.metadata?.interlude;
  return isObject(interlude) && interlude.whole === true ? delta : text + delta;
}

/**
 * Reads the stored deltas and gives the statements that fold them. What this batch adds to them is in `into`, which
 * gets the whole text; it must not have been written yet.
 */
export async function foldStoredDeltas(transaction: WriteTransaction, folds: StoredFold[]): Promise<InStatement[]> {
  if (folds.length === 0) return [];
  const found = await transaction.batch(folds.map((fold) => ({ sql: SELECT_DELTAS, args: deltaArgs(fold) })));
  return folds.flatMap((fold, index) => foldOne(fold, found[index]?.rows[0]));
}

const DELTAS = 'session_id = ? AND position >= ? AND position <= ? AND type = ? AND entity_id = ?';

// The texts travel as JSON: extracted, a NUL or half a surrogate pair in them would not survive.
const SELECT_DELTAS = `SELECT max(position) AS last, payload, count(*) AS count,
  json_group_array(json_object('delta', payload->'$.delta', 'metadata', payload->'$.metadata') ORDER BY position) AS deltas
  FROM events WHERE ${DELTAS}`;

function deltaArgs({ sessionId, fromPosition, upToPosition, type, entityId }: StoredFold) {
  return [sessionId, fromPosition, upToPosition, type, columnText(entityId)];
}

function foldOne(fold: StoredFold, row: Row | undefined): InStatement[] {
  const count = Number(row?.count ?? 0);
  const deltas: AgUiEvent[] = JSON.parse(String(row?.deltas ?? '[]'));
  const text = deltas.reduce(appendDelta, '');
  const { into } = fold;
  // a single delta is whole as it is
  if (count + fold.deltaCount < 2) return [];
  if (into !== null) {
    into.event = wholeEvent(into.event, appendDelta(text, into.event));
    return count === 0 ? [] : [{ sql: `DELETE FROM events WHERE ${DELTAS}`, args: deltaArgs(fold) }];
  }
  if (row === undefined) return [];
  const last = Number(row.last);
  const payload = JSON.stringify(wholeEvent(JSON.parse(String(row.payload)), text));
  return [
    { sql: 'UPDATE events SET payload = ? WHERE position = ?', args: [payload, last] },
    { sql: `DELETE FROM events WHERE ${DELTAS} AND position < ?`, args: [...deltaArgs(fold), last] },
  ];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
