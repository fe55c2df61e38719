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

/** How far back a session is searched for a part that its snapshot lists under an unknown id. */
const RECENT = { rows: 1_000, bytes: 4 * 1024 * 1024 };
/** For all sessions of a batch together. Sessions beyond the hundredth are not searched. */
const RECENT_IN_ALL = { rows: 10_000, bytes: 16 * 1024 * 1024, sessions: 100 };

/** A run's input repeats the whole conversation. Longer ones are not searched for their newest messages. */
const MOST_INPUT_BYTES = 256 * 1024;

/** Selects the newest rows of each session, with the inputs of its runs. @param length as in `SaidScope`, of the longest part of the session */
export function selectRecentlySaid(
  sessions: readonly Pick<SaidScope, 'sessionId' | 'length'>[],
): Iterable<InStatement> {
  const some = sessions.slice(0, RECENT_IN_ALL.sessions);
  const share = (most: 'rows' | 'bytes') => Math.min(RECENT[most], Math.floor(RECENT_IN_ALL[most] / some.length));
  return inPieces(
    some,
    (json) => ({
      sql: `SELECT e.position, e.session_id, e.entity_id, e.type, e.turn_id,
              iif(octet_length(e.payload) <= iif(e.type = 'RUN_STARTED', ${MOST_INPUT_BYTES}, wanted.value->>1),
                e.payload, NULL) AS payload
            FROM json_each(?) AS wanted CROSS JOIN events AS e
            WHERE (e.entity_id IS NOT NULL OR e.type = 'RUN_STARTED') AND e.type <> 'CUSTOM' AND e.position IN
              (SELECT position FROM
                (SELECT position, sum(bytes) OVER (ORDER BY position DESC) AS bytes FROM
                  (SELECT position, octet_length(payload) AS bytes FROM events INDEXED BY events_by_session
                    WHERE session_id = wanted.value->>0 ORDER BY position DESC LIMIT ${share('rows')}))
                WHERE bytes <= ${share('bytes')})`,
      args: [json],
    }),
    ({ sessionId, length }) => [columnText(sessionId), length * 6 + ROW_FRAME],
  );
}
