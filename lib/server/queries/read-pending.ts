import { CUSTOM } from '@interlude/protocol/event-fields';
import { ShownFold } from '@interlude/protocol/projections/items';
import type {
  Obligation,
  ObligationList,
  RequestDetail,
  RequestItem,
  SessionObligations,
} from '@interlude/protocol/read-models';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { Row } from '@libsql/client';
import { OBLIGATION_ROW, obligationFromRow } from '@/db/read-model-rows';
import { agentsIn, sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import type { ReadScope } from '@/lib/server/access/request-context';
import { query, rawRow, readSnapshot } from './read-snapshot';
import { ENTRY_COLUMNS, RedactedEntries, withRedacted } from './read-turns';

const MAX_SHOWN = 200;
const MAX_SETTLED = 20;

/**
 * An agent's pending replies, oldest first; none for an unknown agent, because its runner may ask before it sends the
 * first record. Reads a range of an index that holds nothing else.
 *
 * @param byAlias true to return the runner's ids of the sessions
 */
export async function readObligations(view: ReadScope, agentId: string, byAlias = false): Promise<ObligationList> {
  const sql = `SELECT ${OBLIGATION_ROW.columns()},
      (SELECT alias FROM session_aliases AS a WHERE a.session_id = obligations.session_id) AS alias FROM obligations INDEXED BY obligations_owed_by_agent
    WHERE agent_id = ? AND state = 'owed' AND ${agentsIn(view.scope)} ORDER BY position LIMIT ?`;
  const open = query(
    (row) => {
      const obligation = obligationFromRow(row);
      return byAlias && row.alias !== null ? { ...obligation, sessionId: String(row.alias) } : obligation;
    },
    sql,
    columnText(agentId),
    MAX_SHOWN,
  );
  const { position, found } = await readSnapshot(view, [open]);
  const shown = (obligation: Obligation) => {
    const { messageId, sessionId, from, text, sentAt, owedSince, isOverdue, candidate } = obligation;
    return { messageId, sessionId, from, text, sentAt, owedSince, isOverdue, candidate };
  };
  return { position, obligations: found[0].map(shown) };
}

/** A session's pending replies, oldest first, and the last settled ones; none for an unknown session. */
export async function readSessionObligations(view: ReadScope, sessionId: string): Promise<SessionObligations> {
  const columns = OBLIGATION_ROW.columns();
  const where = sessionsIn(view.scope, 'session_id');
  const id = columnText(sessionId);
  const { position, found } = await readSnapshot(view, [
    query(
      obligationFromRow,
      `SELECT ${columns} FROM obligations INDEXED BY obligations_owed_by_session
        WHERE session_id = ? AND state = 'owed' AND ${where} ORDER BY position LIMIT ?`,
      id,
      MAX_SHOWN,
    ),
    query(
      obligationFromRow,
      `SELECT ${columns} FROM obligations INDEXED BY obligations_settled
        WHERE session_id = ? AND state <> 'owed' AND ${where} ORDER BY updated_position DESC LIMIT ?`,
      id,
      MAX_SETTLED,
    ),
  ]);
  return { position, owed: found[0] ?? [], settled: found[1] ?? [] };
}

const MAX_ANSWERS = 100;

/**
 * The newest request with this id, as its turn shows it, with answers and outcome.
 *
 * @returns null for an unknown request
 */
export async function readRequest(
  view: ReadScope,
  sessionId: string,
  requestId: string,
): Promise<RequestDetail | null> {
  const [session, request] = [columnText(sessionId), columnText(requestId)];
  const opening = `SELECT position, turn_id FROM events INDEXED BY events_of_requests
    WHERE session_id = ?1 AND entity_id = ?2 AND name IN ('${CUSTOM.requestOpened}', '${CUSTOM.requestResolved}')
      AND name = '${CUSTOM.requestOpened}' AND ${sessionsIn(view.scope, 'session_id')} ORDER BY position DESC LIMIT 1`;
  const { position, found } = await readSnapshot<[Row, Row, Row]>(view, [
    query(rawRow, opening, session, request),
    query(
      rawRow,
      `SELECT ${ENTRY_COLUMNS} FROM events INDEXED BY events_of_requests
        WHERE session_id = ?1 AND entity_id = ?2 AND name IN ('${CUSTOM.requestOpened}', '${CUSTOM.requestResolved}')
          AND position >= (SELECT position FROM (${opening})) ORDER BY position`,
      session,
      request,
    ),
    query(
      rawRow,
      `SELECT ${ENTRY_COLUMNS} FROM events WHERE session_id = ?1 AND turn_id = (SELECT turn_id FROM (${opening}))
        AND name IN ('${CUSTOM.commandQueued}', '${CUSTOM.commandDone}', '${CUSTOM.commandFailed}')
        AND position > (SELECT position FROM (${opening})) AND payload->>'$.value.request_id' = ?2
        ORDER BY position LIMIT ${MAX_ANSWERS}`,
      session,
      request,
    ),
  ]);
  const [[opened], changes, answers] = found;
  if (opened === undefined) return null;
  const fold = new ShownFold({ items: [] }, false);
  const shown = new RedactedEntries(view);
  const rows = [...changes, ...answers].sort((a, b) => Number(a.position) - Number(b.position));
  for (const row of rows) fold.apply(shown.fromRow(row));
  const item = fold.shown().items.findLast((one): one is RequestItem => one.kind === 'request' && one.id === requestId);
  const turnId = opened.turn_id === null ? null : String(opened.turn_id);
  if (item === undefined) return null;
  const detail = await withRedacted(view, { request: item }, { position, turnId });
  return view.redacts ? markRedacted({ ...detail, redacted: shown.tally.redacted }) : detail;
}
