import { type AgUiEvent, CUSTOM, type ParkedSettledValue } from '@interlude/protocol/ag-ui';
import type { AssignParked, DiscardParked, ParkedAnswer } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { isPosition, positionToNumber } from '@interlude/protocol/position';
import type { Scope } from '@interlude/protocol/scope';
import { withInterlude } from '@interlude/protocol/with-interlude';
import { quarantine } from '@/db/schema';
import { sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { Asked } from '@/lib/server/access/asked';
import { personOf } from '@/lib/server/access/person-of';
import type { Principal } from '@/lib/server/access/principal';
import type { ServerContext } from '@/lib/server/access/server-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import type { EventFact } from '@/lib/server/ingest/facts';
import { type Ask, askedBefore, namedAsk, noteAsk } from './asks';
import { conflict, missing } from './refusals';

/**
 * People decide about records of a task that can't be traced to one session: they say which session it belongs to, or
 * that it is of no use. Everything one session told of one run of it is decided together, in the order it came.
 *
 * Ordering: assigned records go through the same judging, planning and appending as new ones.
 * Failure: the records, what the transcript says of it and the counts change in one transaction or not at all.
 */

/** The most that one request decides; the rest stays parked, and the answer says how much that is. */
const MAX_SETTLED = 500;
const MAX_SETTLED_BYTES = 8 * 1024 * 1024;

type Ids = 'agentId' | 'position';

interface Parked {
  position: number;
  agentId: string;
  /** The session whose runner told of it. */
  sessionId: string;
  taskId: string;
  runId: string | null;
}

interface Settlement {
  state: 'assigned' | 'discarded';
  /** The session it is assigned to. */
  sessionId: string | null;
  reason: string | null;
  clientId: string | null;
  /** Who decides, and what they may see. */
  by: string;
  scope: Scope;
}

/**
 * `POST /agents/:id/parked/:position/assign`
 *
 * @returns once it is on disk; the same `clientId` again is answered the same
 * @throws AppError `not_found`, `conflict` with the reason `parked_settled`, `client_id_reused` or
 *   `session_of_another_agent`
 */
export function postAssign({ ids, body, principal }: Asked<Ids, { body: AssignParked }>, server: ServerContext) {
  const { sessionId, clientId = null } = body;
  return settle(server, ids, { state: 'assigned', sessionId, reason: null, clientId, ...deciderOf(principal) });
}

/** `POST /agents/:id/parked/:position/discard`: it stays in the list of what was discarded. @see postAssign */
export function postDiscard({ ids, body, principal }: Asked<Ids, { body: DiscardParked }>, server: ServerContext) {
  const { reason, clientId = null } = body;
  return settle(server, ids, {
    state: 'discarded',
    sessionId: null,
    reason: reason?.trim() || null,
    clientId,
    ...deciderOf(principal),
  });
}

function deciderOf(principal: Principal) {
  return { by: personOf(principal), scope: principal.scope };
}

async function settle(
  server: ServerContext,
  { agentId, position }: Asked<Ids>['ids'],
  how: Settlement,
): Promise<ParkedAnswer> {
  const now = server.now();
  return server.database.writes.run(async (transaction) => {
    const found = await findParked(transaction, agentId, position);
    const about = { taskId: found.taskId, state: how.state, sessionId: how.sessionId };
    const named = namedAsk(found.sessionId, how.clientId ?? undefined, askOf(position, how));
    if ((await askedBefore(transaction, named)) !== null) {
      return { ...about, ...(await countOf(transaction, found, how)) };
    }
    requireOpen(found);
    if (how.sessionId !== null) await requireSessionOf(transaction, found.agentId, how.sessionId, how.scope);
    const records = await readRecords(transaction, found);
    await appendFacts(transaction, now, eventsOf(found, how, records));
    await transaction.execute({
      sql: `UPDATE quarantine SET parked = ?, settled_at = ?, settled_by = ?, settled_reason = ?, settled_session_id = ?,
              settled_client_id = ?
            WHERE position IN (SELECT value FROM json_each(?))`,
      args: [
        how.state,
        now,
        columnText(how.by),
        how.reason === null ? null : columnText(how.reason),
        how.sessionId === null ? null : columnText(how.sessionId),
        how.clientId === null ? null : columnText(how.clientId),
        JSON.stringify(records.map((record) => record.position)),
      ],
    });
    await noteAsk(transaction, named, null);
    return { ...about, ...(await countOf(transaction, found, how)), settled: records.length };
  });
}

/** A parked record always has an agent, a session and a task. */
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

function askOf(position: string, { state, sessionId, reason }: Settlement): Ask {
  if (state === 'assigned') return { type: 'parked.assign', position, sessionId };
  return { type: 'parked.discard', position, reason };
}

async function findParked(transaction: WriteTransaction, agentId: string, position: string): Promise<Found> {
  const { rows } = isPosition(position)
    ? await transaction.execute({
        sql: `SELECT ${PARKED.columns()} FROM quarantine WHERE position = ? AND agent_id = ? AND parked IS NOT NULL`,
        args: [positionToNumber(position), columnText(agentId)],
      })
    : { rows: [] };
  const found = PARKED.first({ rows });
  if (found === undefined) {
    const message = `Nothing is parked at ${JSON.stringify(position)} of the agent ${JSON.stringify(agentId)}. GET /api/v1/agents/:id/parked lists what is.`;
    throw new AppError('not_found', message);
  }
  const { parked, settledSessionId, taskRunId, ...ids } = found;
  const settled = parked === 'parked' ? null : (parked as Settlement['state']);
  return { ...(ids as Omit<Parked, 'runId'>), runId: taskRunId, settled, settledIn: settledSessionId };
}

/** @throws AppError if it was settled before */
function requireOpen({ settled, settledIn }: Found): void {
  if (settled === null) return;
  const what = settled === 'assigned' ? `assigned to the session ${settledIn}` : 'discarded';
  throw conflict('parked_settled', `The record was ${what} before: nothing is left to decide.`, { state: settled });
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
  if (owner === undefined) {
    throw missing('session', sessionId, 'GET /api/v1/agents/:id lists them.');
  }
  if (owner === agentId) return;
  const message = `The session belongs to the agent ${owner}. Choose one of the agent ${agentId}.`;
  throw conflict('session_of_another_agent', message);
}

/**
 * Everything parked that the same session told of the same run, oldest first; always includes the one that was named.
 */
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
  { sessionId, reason, by }: Pick<Settlement, 'sessionId' | 'reason' | 'by'>,
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
  const note = (where: string, said: ParkedSettledValue): EventFact => {
    return { agentId, sessionId: where, event: { type: 'CUSTOM', name: CUSTOM.parkedAssigned, value: said } };
  };
  const isElsewhere = sessionId !== from;
  const notes = [...(isElsewhere ? [note(sessionId, value)] : []), note(from, { ...value, session_id: sessionId })];
  const reportedBy = isElsewhere ? from : undefined;
  const told = records.map(({ record: { occurredAt, event } }) => ({
    agentId,
    sessionId,
    occurredAt,
    event: withInterlude(event, { reportedBy, assignedBy: by }),
  }));
  return [...notes, ...told];
}

async function countOf(
  transaction: WriteTransaction,
  { agentId, sessionId, taskId, runId }: Parked,
  { clientId }: Settlement,
): Promise<{ settled: number; left: number }> {
  const { rows } = await transaction.execute({
    sql: `SELECT count(*) FILTER (WHERE parked = 'parked') AS left, count(*) FILTER (WHERE settled_client_id = ?) AS settled
          FROM quarantine WHERE agent_id = ? AND parked IS NOT NULL AND session_id = ? AND task_id = ? AND task_run_id IS ?`,
    args: [clientId === null ? null : columnText(clientId), agentId, sessionId, taskId, runId],
  });
  return { settled: Number(rows[0]?.settled ?? 0), left: Number(rows[0]?.left ?? 0) };
}
