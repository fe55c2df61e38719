import { CUSTOM } from '@interlude/protocol/ag-ui';
import { ShownFold } from '@interlude/protocol/projections/items';
import type { RequestDetail, RequestItem } from '@interlude/protocol/read-models';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { Row } from '@libsql/client';
import { sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import type { Sight } from '@/lib/server/access/sight';
import { asRead, query, readTogether } from './read-together';
import { ShownEntries, withoutSecrets } from './shown-entries';
import { ENTRY_COLUMNS } from './turn-row';

/** Most answers that were sent to one request. */
const MOST_ANSWERS = 100;

/**
 * A request as its turn shows it, without the rest of the turn: what was asked last under the id, what came of that, and
 * what people answered.
 *
 * @returns null if nothing was ever asked under the id
 */
export async function readRequest(sight: Sight, sessionId: string, requestId: string): Promise<RequestDetail | null> {
  const [session, request] = [columnText(sessionId), columnText(requestId)];
  const asked = `SELECT position, turn_id FROM events INDEXED BY events_of_requests
    WHERE session_id = ?1 AND entity_id = ?2 AND name IN ('${CUSTOM.requestOpened}', '${CUSTOM.requestResolved}')
      AND name = '${CUSTOM.requestOpened}' AND ${sessionsIn(sight.scope, 'session_id')} ORDER BY position DESC LIMIT 1`;
  const { position, found } = await readTogether<[Row, Row, Row]>(sight, [
    query(asRead, asked, session, request),
    query(
      asRead,
      `SELECT ${ENTRY_COLUMNS} FROM events INDEXED BY events_of_requests
        WHERE session_id = ?1 AND entity_id = ?2 AND name IN ('${CUSTOM.requestOpened}', '${CUSTOM.requestResolved}')
          AND position >= (SELECT position FROM (${asked})) ORDER BY position`,
      session,
      request,
    ),
    query(
      asRead,
      `SELECT ${ENTRY_COLUMNS} FROM events WHERE session_id = ?1 AND turn_id = (SELECT turn_id FROM (${asked}))
        AND name IN ('${CUSTOM.commandQueued}', '${CUSTOM.commandDone}', '${CUSTOM.commandFailed}')
        AND position > (SELECT position FROM (${asked})) AND payload->>'$.value.request_id' = ?2
        ORDER BY position LIMIT ${MOST_ANSWERS}`,
      session,
      request,
    ),
  ]);
  const [[opened], told, answers] = found;
  if (opened === undefined) return null;
  const fold = new ShownFold({ items: [] }, false);
  const shown = new ShownEntries(sight);
  const rows = [...told, ...answers].sort((a, b) => Number(a.position) - Number(b.position));
  for (const row of rows) fold.take(shown.fromRow(row));
  const item = fold.shown().items.findLast((one): one is RequestItem => one.kind === 'request' && one.id === requestId);
  const turnId = opened.turn_id === null ? null : String(opened.turn_id);
  if (item === undefined) return null;
  const detail = await withoutSecrets(sight, { request: item }, { position, turnId });
  return sight.redacts ? markRedacted({ ...detail, redacted: shown.tally.redacted }) : detail;
}
