import type { InStatement } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { inPieces } from '@/db/json-pieces';

/** This many of its newest rows have all of a message or call, unless it has streamed many deltas since it began. */
export const MOST_SAID_ROWS = 8;
/** Roughly how much JSON an event has besides its text. */
const ROW_FRAME = 1_024;

export interface SaidScope {
  sessionId: string;
  id: string;
  /** The length of the text to compare with it, in UTF-16 units. */
  length: number;
}

export function saidKey(sessionId: string, id: string): string {
  return JSON.stringify([sessionId, id]);
}

/** The newest rows of each; without the payload if that is longer than the text to compare with. */
export function selectSaid(said: readonly SaidScope[]): Iterable<InStatement> {
  return inPieces(
    said,
    (json) => ({
      sql: `SELECT e.position, e.session_id, e.entity_id, e.type, e.turn_id,
              iif(octet_length(e.payload) <= wanted.value->>2, e.payload, NULL) AS payload
            FROM json_each(?) AS wanted CROSS JOIN events AS e
            WHERE e.position IN (SELECT position FROM events INDEXED BY events_by_entity
              WHERE session_id = wanted.value->>0 AND entity_id = wanted.value->>1 AND type <> 'CUSTOM'
              ORDER BY position DESC LIMIT ${MOST_SAID_ROWS})`,
      args: [json],
    }),
    ({ sessionId, id, length }) => [columnText(sessionId), columnText(id), length * 6 + ROW_FRAME],
  );
}
