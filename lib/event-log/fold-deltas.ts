import type { InStatement, Row } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { MAX_ARGUMENT_BYTES, runInTurns } from '@/db/json-pieces';
import type { WriteTransaction } from '@/db/write-queue';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { utf8Length } from '@/lib/protocol/log-text';
import { stringifyWellFormed } from '@/lib/protocol/well-formed';
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

/** A text that is longer as JSON stays in its deltas: one row holds what a libSQL server takes as one argument. */
export function isFoldable(text: string): boolean {
  // as JSON a UTF-16 unit is 6 bytes at most
  return text.length * 6 <= MAX_FOLDED_BYTES || utf8Length(JSON.stringify(text)) <= MAX_FOLDED_BYTES;
}

/** Each looks through what its session has said since the message began. */
export const FOLDS_AT_ONCE = 4;

const MAX_FOLDED_BYTES = MAX_ARGUMENT_BYTES / 2;

/**
 * Reads the stored deltas and gives the statements that fold them. What this batch adds to them is in `into`, which
 * gets the whole text; it must not have been written yet.
 */
export async function foldStoredDeltas(transaction: WriteTransaction, folds: StoredFold[]): Promise<InStatement[]> {
  if (folds.length === 0) return [];
  const found = await runInTurns(
    transaction,
    folds.map((fold) => ({ sql: SELECT_DELTAS, args: [...deltaArgs(fold), MAX_FOLDED_BYTES] })),
    FOLDS_AT_ONCE,
  );
  return folds.flatMap((fold, index) => foldOne(fold, found[index]?.rows ?? []));
}

const DELTAS = 'session_id = ?1 AND position >= ?2 AND position <= ?3 AND type = ?4 AND entity_id = ?5';

/** Where all of it together is too long no payload is read, however many deltas there are. */
const SELECT_DELTAS = `SELECT position, iif(bytes <= ?6, payload, NULL) AS payload FROM (
    SELECT position, payload, SUM(octet_length(payload)) OVER () AS bytes FROM events WHERE ${DELTAS}
  ) ORDER BY position`;

function deltaArgs({ sessionId, fromPosition, upToPosition, type, entityId }: StoredFold) {
  return [sessionId, fromPosition, upToPosition, type, columnText(entityId)];
}

function foldOne(fold: StoredFold, rows: readonly Row[]): InStatement[] {
  const { into } = fold;
  const last = rows.at(-1);
  // a single delta is whole as it is
  if (rows.length + fold.deltaCount < 2 || last?.payload === null) return [];
  const deltas = rows.map((row): AgUiEvent => JSON.parse(String(row.payload)));
  const stored = deltas.reduce(appendDelta, '');
  const text = into === null ? stored : appendDelta(stored, into.event);
  if (!isFoldable(text)) return [];
  if (into !== null) {
    into.event = wholeEvent(into.event, text);
    return rows.length === 0 ? [] : [{ sql: `DELETE FROM events WHERE ${DELTAS}`, args: deltaArgs(fold) }];
  }
  if (last === undefined) return [];
  const position = Number(last.position);
  const payload = stringifyWellFormed(wholeEvent(deltas.at(-1) as AgUiEvent, text));
  return [
    { sql: 'UPDATE events SET payload = ? WHERE position = ?', args: [payload, position] },
    { sql: `DELETE FROM events WHERE ${DELTAS} AND position < ?6`, args: [...deltaArgs(fold), position] },
  ];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
