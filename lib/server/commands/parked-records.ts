import type { AgUiEvent, ParkedSettledValue } from '@interlude/protocol/ag-ui';
import type { AssignParked, DiscardParked, ParkedResponse } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { withInterlude } from '@interlude/protocol/interlude-metadata';
import { isPosition, positionToNumber } from '@interlude/protocol/position';
import type { Scope } from '@interlude/protocol/scope';
import { quarantine } from '@/db/schema';
import { sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { notFound, operatorName, type Principal } from '@/lib/server/access/principal';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { EventFact } from '@/lib/server/ingest/facts';

import { conflict, dedupeKey, findRepeat, recordRequest } from './accept-command';

/**
 * Assigns or discards parked records: records of a task that can't be traced to one session. All records that one
 * session reported about one run of the task are settled together, in the order in which they arrived.
 *
 * Ordering: assigned records are validated, planned and appended like new ones.
 * Failure: the records, their events and the counts change in one transaction.
 */

/** Maximum records and bytes per request. Further records stay parked, and the response counts them. */
const MAX_SETTLED = 500;
const MAX_SETTLED_BYTES = 8 * 1024 * 1024;

type Ids = 'agentId' | 'position';

interface Parked {
  position: number;
  agentId: string;
  /** The session whose runner reported the record. */
  sessionId: string;
  taskId: string;
  runId: string | null;
}

interface Settlement {
  state: 'assigned' | 'discarded';
  /** The session that receives the records. */
  sessionId: string | null;
  reason: string | null;
  clientId: string | undefined;
}

/**
 * `POST /agents/:id/parked/:position/assign`
 *
 * @returns once the assignment is on disk; idempotent per `clientId`
 * @throws AppError `not_found`, `conflict` with the reason `parked_settled`, `client_id_reused` or
 *   `session_of_another_agent`
 */
export function postAssign(
  { ids, body, principal }: RequestContext<Ids, { body: AssignParked }>,
  server: ServerContext,
) {
  const { sessionId, clientId } = body;
  return settle(server, ids, principal, { state: 'assigned', sessionId, reason: null, clientId });
}

/** `POST /agents/:id/parked/:position/discard`: the records move to the list of discarded ones. @see postAssign */
export function postDiscard(
  { ids, body, principal }: RequestContext<Ids, { body: DiscardParked }>,
  server: ServerContext,
) {
  const reason = body.reason?.trim() || null;
  return settle(server, ids, principal, { state: 'discarded', sessionId: null, reason, clientId: body.clientId });
}

async function settle(
  server: ServerContext,
  { agentId, position }: RequestContext<Ids>['ids'],
  principal: Principal,
  how: Settlement,
): Promise<ParkedResponse> {
  const now = server.now();
  const by = operatorName(principal);
  return server.database.writes.run(async (transaction) => {
    const found = await findParked(transaction, agentId, position);
    const { state, sessionId, reason } = how;
    const about = { taskId: found.taskId, state, sessionId };
    const request =
      state === 'assigned'
        ? ({ type: 'parked.assign', position, sessionId } as const)
        : ({ type: 'parked.discard', position, reason } as const);
    const key = dedupeKey(found.sessionId, how.clientId, request);
    if ((await findRepeat(transaction, key)) !== null) {
      return { ...about, ...(await countOf(transaction, found, how)) };
    }
    requireParked(found);
    if (sessionId !== null) await requireSessionOf(transaction, found.agentId, sessionId, principal.scope);
    const records = await readRecords(transaction, found);
    await appendFacts(transaction, now, eventsOf(found, how, by, records));
    await transaction.execute({
      sql: `UPDATE quarantine SET parked = ?, settled_at = ?, settled_by = ?, settled_reason = ?, settled_session_id = ?,
              settled_client_id = ?
            WHERE position IN (SELECT value FROM json_each(?))`,
      args: [
        state,
        now,
        columnText(by),
        reason === null ? null : columnText(reason),
        sessionId === null ? null : columnText(sessionId),
        key?.clientId ?? null,
        JSON.stringify(records.map((record) => record.position)),
      ],
    });
    await recordRequest(transaction, key, null);
    return { ...about, ...(await countOf(transaction, found, how)), settled: records.length };
  });
}

/** A parked record always names an agent, a session and a task. */
const PARKED = shapeOf(
  quarantine,
  'position',
  'agentId',
  'sessionId',
  'parked',
  'taskId',
  'taskRunId',
  'settledSessionId',
);

type Found = Parked & { settled: Settlement['state'] | null; settledIn: string | null };

async function findParked(transaction: WriteTransaction, agentId: string, position: string): Promise<Found> {
  const { rows } = isPosition(position)
    ? await transaction.execute({
        sql: `SELECT ${PARKED.columns()} FROM quarantine WHERE position = ? AND agent_id = ? AND parked IS NOT NULL`,
        args: [positionToNumber(position), columnText(agentId)],
      })
    : { rows: [] };
  const found = PARKED.first({ rows });
  if (found === undefined) {
    const message = `The agent ${JSON.stringify(agentId)} has no parked record ${JSON.stringify(position)}. GET /api/v1/agents/:id/parked lists them.`;
    throw new AppError('not_found', message);
  }
  const { parked, settledSessionId, taskRunId, ...ids } = found;
  const settled = parked === 'parked' ? null : (parked as Settlement['state']);
  return { ...(ids as Omit<Parked, 'runId'>), runId: taskRunId, settled, settledIn: settledSessionId };
}

function requireParked({ settled, settledIn }: Found): void {
  if (settled === null) return;
  const outcome = settled === 'assigned' ? `assigned to the session ${settledIn}` : 'discarded';
  throw conflict('parked_settled', `The record was already ${outcome}.`, { state: settled });
}

async function requireSessionOf(
  transaction: WriteTransaction,
  agentId: string,
  sessionId: string,
  scope: Scope,
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT agent_id FROM sessions WHERE id = ? AND ${sessionsIn(scope, 'id')}`,
    args: [columnText(sessionId)],
  });
  const owner = rows[0]?.agent_id;
  if (owner === undefined) throw notFound('session', sessionId, '/agents/:id');
  if (owner === agentId) return;
  const message = `The session belongs to the agent ${owner}. Choose a session of the agent ${agentId}.`;
  throw conflict('session_of_another_agent', message);
}

/** Every parked record of the same session and run, oldest first. The requested one is always included. */
async function readRecords(
  transaction: WriteTransaction,
  found: Parked,
): Promise<{ position: number; record: { occurredAt: number; event: AgUiEvent } }[]> {
  const { rows: sizes } = await transaction.execute({
    sql: `SELECT position, octet_length(record) AS size FROM quarantine
          WHERE agent_id = ? AND parked = 'parked' AND session_id = ? AND task_id = ? AND task_run_id IS ?
          ORDER BY position LIMIT ?`,
    args: [found.agentId, found.sessionId, found.taskId, found.runId, MAX_SETTLED],
  });
  const chosen = new Set([found.position]);
  let bytes = 0;
  for (const { position, size } of sizes) {
    bytes += Number(size);
    if (bytes <= MAX_SETTLED_BYTES) chosen.add(Number(position));
  }
  const { rows } = await transaction.execute({
    sql: 'SELECT position, record FROM quarantine WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position',
    args: [JSON.stringify([...chosen])],
  });
  return rows.map((row) => ({ position: Number(row.position), record: JSON.parse(String(row.record)) }));
}

function eventsOf(
  { agentId, sessionId: from, taskId, runId }: Parked,
  { sessionId, reason }: Settlement,
  by: string,
  records: readonly { record: { occurredAt: number; event: AgUiEvent } }[],
): EventFact[] {
  const value: ParkedSettledValue = {
    task_id: taskId,
    ...(runId === null ? {} : { run_id: runId }),
    count: records.length,
    reported_by: from,
    by,
    ...(reason === null ? {} : { reason }),
  };
  if (sessionId === null) {
    return [{ agentId, sessionId: from, event: { type: 'CUSTOM', name: CUSTOM.parkedDiscarded, value } }];
  }
  const lineIn = (where: string, details: ParkedSettledValue): EventFact => {
    return { agentId, sessionId: where, event: { type: 'CUSTOM', name: CUSTOM.parkedAssigned, value: details } };
  };
  const isElsewhere = sessionId !== from;
  const lines = [...(isElsewhere ? [lineIn(sessionId, value)] : []), lineIn(from, { ...value, session_id: sessionId })];
  const reportedBy = isElsewhere ? from : undefined;
  const assigned = records.map(({ record: { occurredAt, event } }) => ({
    agentId,
    sessionId,
    occurredAt,
    event: withInterlude(event, { reportedBy, assignedBy: by }),
  }));
  return [...lines, ...assigned];
}

async function countOf(
  transaction: WriteTransaction,
  { agentId, sessionId, taskId, runId }: Parked,
  { clientId }: Settlement,
): Promise<{ settled: number; left: number }> {
  const { rows } = await transaction.execute({
    sql: `SELECT count(*) FILTER (WHERE parked = 'parked') AS left, count(*) FILTER (WHERE settled_client_id = ?) AS settled
          FROM quarantine WHERE agent_id = ? AND parked IS NOT NULL AND session_id = ? AND task_id = ? AND task_run_id IS ?`,
    args: [clientId === undefined ? null : columnText(clientId), agentId, sessionId, taskId, runId],
  });
  return { settled: Number(rows[0]?.settled ?? 0), left: Number(rows[0]?.left ?? 0) };
}
