import type { Position } from '@interlude/protocol/position';
import type { AgentSummary, RequestItem, SessionSummary, Task } from '@interlude/protocol/read-models';
import type { TurnHeader } from '@interlude/protocol/turn-places';
import type { Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { AGENT_ROW, agentFromRow, SESSION_ROW, sessionFromRow, TASK_ROW, taskFromRow } from '@/db/read-model-rows';
import { sessions } from '@/db/schema';
import { sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import type { Sight } from '@/lib/server/access/sight';
import { missing } from '@/lib/server/commands/refusals';
import { storedFold } from '@/lib/server/ingest/project-session';
import { readRequest } from '@/lib/server/queries/read-request';
import { asRead, query, readTogether } from '@/lib/server/queries/read-together';
import { type Asked, askedIn, MOST_ASKED } from './interrupts';

/** How a session stands at a position. */
export interface SessionFacts {
  position: Position;
  session: SessionSummary;
  agent: AgentSummary | null;
  openTurn: TurnHeader | null;
  /** What the agent waits for, the oldest first, at most MOST_ASKED. */
  pending: Asked[];
  running: Task[];
}

/** Most running tasks that are read. */
const MOST_RUNNING = 200;

const REMEMBERED = shapeOf(sessions, 'memory', 'places');

/** @throws AppError `not_found` that says how to find the sessions of the agent */
export async function readFacts(sight: Sight, agentId: string, sessionId: string): Promise<SessionFacts> {
  const id = columnText(sessionId);
  const { position, found } = await readTogether<[SessionSummary, Row, AgentSummary, Task]>(sight, [
    query(
      sessionFromRow,
      `SELECT ${SESSION_ROW.columns()} FROM sessions WHERE id = ? AND ${sessionsIn(sight.scope, 'id')}`,
      id,
    ),
    query(asRead, `SELECT ${REMEMBERED.columns()} FROM sessions WHERE id = ?`, id),
    query(agentFromRow, `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`, columnText(agentId)),
    query(
      taskFromRow,
      `SELECT ${TASK_ROW.columns()} FROM tasks WHERE session_id = ? AND status = 'running' ORDER BY position DESC LIMIT ?`,
      id,
      MOST_RUNNING,
    ),
  ]);
  const [[session], [remembered], [agent = null], running] = found;
  if (agent === null) throw missing('agent', agentId, 'GET /api/v1/agents lists them.');
  if (session === undefined || remembered === undefined || session.agentId !== agentId) {
    const list = `GET /api/v1/sessions?agent=${encodeURIComponent(agentId)}`;
    const hint = `A threadId is the id of a session of this agent: ${list} lists them. If your client makes thread ids of its own, name the session in ?session=<id>, or in forwardedProps.interlude.sessionId.`;
    throw missing('session', sessionId, hint);
  }
  const { memory, places } = REMEMBERED.read(remembered);
  const { pendingRequests = [] } = storedFold(memory);
  const pending: Asked[] = [];
  for (const { id: requestId } of pendingRequests.slice(0, MOST_ASKED)) {
    const asked = await readAsked(sight, session.id, requestId);
    if (asked !== null && asked.outcome === null) pending.push(asked);
  }
  return { position, session, agent, openTurn: places.openTurn, pending, running: running.reverse() };
}

/** What was asked last under the id, and how it ended. */
export async function readAsked(
  sight: Sight,
  sessionId: string,
  requestId: string,
): Promise<(Asked & Pick<RequestItem, 'outcome'>) | null> {
  const detail = await readRequest(sight, sessionId, requestId);
  if (detail === null) return null;
  return { ...askedIn(detail.request), outcome: detail.request.outcome };
}

/** Where a turn began; null if there is none. */
export async function turnBegan(database: Database, sessionId: string, turnId: string): Promise<number | null> {
  const { rows } = await database.reader.execute({
    sql: 'SELECT position FROM turns WHERE session_id = ? AND id = ?',
    args: [columnText(sessionId), columnText(turnId)],
  });
  return rows[0] === undefined ? null : Number(rows[0].position);
}

/**
 * Which of these ids are of messages that the session has: written on the dashboard, or named by a turn that answered
 * them.
 */
export async function messagesKnown(
  database: Database,
  sessionId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const id = columnText(sessionId);
  const asked = JSON.stringify(ids);
  const { rows } = await database.reader.execute({
    sql: `SELECT id FROM commands WHERE session_id = ?1 AND type = 'message' AND id IN (SELECT value FROM json_each(?2))
          UNION
          SELECT message_id FROM obligations WHERE session_id = ?1 AND message_id IN (SELECT value FROM json_each(?2))`,
    args: [id, asked],
  });
  return new Set(rows.map(({ id: known }) => String(known)));
}

/** Where a command stands in its session's log: behind what the session shows of it. Null if it is not known any more. */
export async function commandAt(database: Database, commandId: string): Promise<number | null> {
  const { rows } = await database.reader.execute({
    sql: 'SELECT position FROM commands WHERE id = ?',
    args: [commandId],
  });
  return rows[0] === undefined ? null : Number(rows[0].position);
}
