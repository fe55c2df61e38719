import type { InStatement, ResultSet, Row } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { agentFromRow, obligationFromRow, producerFromRow, sessionFromRow, taskFromRow } from '@/db/fleet-rows';
import { runInTurns } from '@/db/json-pieces';
import { Pace } from '@/db/next-turn';
import type { WriteTransaction } from '@/db/write-queue';
import { MAX_FANNED_OUT } from '@/lib/protocol/limits';
import type { AgentSummary, Obligation, ProducerSummary, Task } from '@/lib/protocol/read-models';
import type { AgentLog, SessionChange } from './batch-rows';

/** What a batch may touch, as it stands before it. */
export interface BatchState {
  /** The counter. */
  position: number;
  producer: ProducerSummary | null;
  sessions: Map<string, SessionChange>;
  agents: Map<string, AgentSummary>;
  /** By session. */
  tasks: Map<string, Task[]>;
  /** Sessions of the same agents that know a task of the batch's by its id, with the runs they know. */
  taskHomes: TaskHomeRow[];
  /** By session. */
  obligations: Map<string, Obligation[]>;
  /** Where this producer has written; only read when asked for. */
  producerSessionIds: string[];
  /** By agent, of those whose log the batch writes to. */
  logs: Map<string, AgentLog>;
}

export interface TaskHomeRow {
  agentId: string;
  taskId: string;
  runId: string | null;
  sessionId: string;
}

export interface BatchScope {
  producerId: string;
  sessionIds: string[];
  agentIds: string[];
  /** Agents whose sessions that are not done must all be known: something failed around them. */
  openSessionsOf: string[];
  /** Agents whose log is written to. */
  logAgentIds: string[];
  /** Tasks that sessions speak of; a run where it is named. */
  taskIds: { agentId: string; sessionId: string; taskId: string; runId: string | null }[];
  /** `settles`: whether a session's owed replies may be given, besides what is named. */
  obligations: { sessionId: string; messageIds: string[]; settles: boolean }[];
  /** Sessions whose running tasks all end. */
  endedSessionIds: string[];
  /** Sessions in which a turn may answer any task that ended lately. */
  wokenSessionIds: string[];
  /** Whether the batch says something to every session of its producer. */
  allProducerSessions: boolean;
}

/** One round trip. CROSS JOIN keeps SQLite from turning the lookups by key into a scan. */
export async function readBatchState(transaction: WriteTransaction, scope: BatchScope): Promise<BatchState> {
  const statements: InStatement[] = [
    'SELECT position FROM counter',
    { sql: 'SELECT * FROM producers WHERE id = ?', args: [scope.producerId] },
    selectSessions(scope.sessionIds.slice(0, IDS_AT_ONCE)),
    {
      // the producer's own agent too: a record that does not say whose it is counts as that agent's
      sql: `SELECT a.* FROM (SELECT value AS id FROM json_each(?) UNION SELECT agent_id FROM producers WHERE id = ?)
            AS wanted CROSS JOIN agents AS a ON a.id = wanted.id`,
      args: [JSON.stringify(scope.agentIds), scope.producerId],
    },
  ];
  const read = (statement: InStatement) => statements.push(statement) - 1;
  const sessionsAt = [2, ...piecesOf(scope.sessionIds.slice(IDS_AT_ONCE)).map((ids) => read(selectSessions(ids)))];
  const taskPieces = piecesOf(scope.taskIds);
  const tasksAt = taskPieces.map((taskIds) => read(selectTasks(taskIds)));
  const homesAt = taskPieces.map((taskIds) => read(selectTaskHomes({ ...scope, taskIds })));
  const obligationsAt = scope.obligations.length === 0 ? -1 : read(selectObligations(scope.obligations));
  const settledIn = scope.obligations
    .filter(({ settles }) => settles)
    .map(({ sessionId }) => read(selectOwed(sessionId)));
  const latestAt = scope.wokenSessionIds.length === 0 ? -1 : read(selectLatestTasks(scope.wokenSessionIds));
  const runningAt = scope.endedSessionIds.length === 0 ? -1 : read(selectRunningTasks(scope.endedSessionIds));
  const siblingsAt = scope.allProducerSessions ? read(selectProducerSessions(scope.producerId)) : -1;
  const openAt = scope.openSessionsOf.length === 0 ? -1 : read(selectOpenSessions(scope.openSessionsOf));
  const logsAt = scope.logAgentIds.length === 0 ? -1 : read(selectLogs(scope.logAgentIds));
  const isLarge = scope.sessionIds.length > IDS_AT_ONCE || taskPieces.length > 1;
  const results = await runInTurns(transaction, statements, isLarge ? 1 : statements.length);

  const pace = new Pace();
  await pace.rest();
  const sessions = await pace.map(
    [...sessionsAt, siblingsAt, openAt].flatMap((at) => rowsOf(results, at)),
    sessionChangeFromRow,
  );
  const owed = [obligationsAt, ...settledIn].flatMap((at) => rowsOf(results, at)).map(obligationFromRow);
  const [counter] = rowsOf(results, 0);
  const [producer] = rowsOf(results, 1);
  const state: BatchState = {
    position: Number(counter?.position ?? 0),
    producer: producer === undefined ? null : producerFromRow(producer),
    sessions: new Map(sessions.map((change) => [change.summary.id, change])),
    agents: new Map(rowsOf(results, 3).map((row) => [String(row.id), agentFromRow(row)])),
    tasks: bySession(
      unique(
        await pace.map(
          [...tasksAt, runningAt, latestAt].flatMap((at) => rowsOf(results, at)),
          taskFromRow,
        ),
      ),
    ),
    taskHomes: await pace.map(
      homesAt.flatMap((at) => rowsOf(results, at)),
      (row) => ({
        agentId: String(row.agent_id),
        taskId: String(row.id),
        runId: row.run_id === null ? null : String(row.run_id),
        sessionId: String(row.session_id),
      }),
    ),
    obligations: bySession(owed),
    producerSessionIds: rowsOf(results, siblingsAt).map((row) => String(row.id)),
    logs: new Map(
      rowsOf(results, logsAt).map((row) => [
        String(row.agent_id),
        { lastLine: Number(row.last_line), bytes: Number(row.bytes) },
      ]),
    ),
  };
  await readElsewhere(transaction, scope.taskIds, state, pace);
  return state;
}

/** A task of which more sessions than this know by its id is nobody's for certain, unless its run says more. */
const MAX_HOMES_READ = 16;

/** Adds the sessions whose tasks another session of their agent speaks of, with those tasks. Seldom is there one. */
async function readElsewhere(
  transaction: WriteTransaction,
  wanted: BatchScope['taskIds'],
  state: BatchState,
  pace: Pace,
): Promise<void> {
  if (state.taskHomes.length === 0) return;
  const homes = new Map<string, { sessions: Set<string>; byRun: Map<string, Set<string>> }>();
  await pace.each(state.taskHomes, ({ agentId, taskId, runId, sessionId }) => {
    const key = JSON.stringify([agentId, taskId]);
    const known = homes.get(key) ?? { sessions: new Set(), byRun: new Map() };
    homes.set(key, known);
    known.sessions.add(sessionId);
    if (runId !== null) known.byRun.set(runId, (known.byRun.get(runId) ?? new Set()).add(sessionId));
  });
  const found = new Map<string, { sessionId: string; taskId: string }>();
  await pace.each(wanted, ({ agentId, sessionId, taskId, runId }) => {
    const known = homes.get(JSON.stringify([agentId, columnText(taskId)]));
    const ofRun = runId === null ? undefined : known?.byRun.get(columnText(runId));
    const may = ofRun ?? known?.sessions;
    // Its own task is nobody else's, unless another session started the very run.
    if (may === undefined || may.size > MAX_HOMES_READ || may.has(sessionId)) return;
    for (const id of may) found.set(JSON.stringify([id, taskId]), { sessionId: id, taskId });
  });
  if (found.size === 0) return;
  const unread = [...new Set([...found.values()].map(({ sessionId }) => sessionId))].filter(
    (id) => !state.sessions.has(id),
  );
  const sessionPieces = piecesOf(unread).map(selectSessions);
  const taskPieces = piecesOf([...found.values()]).map(selectTasks);
  const results = await runInTurns(transaction, [...sessionPieces, ...taskPieces], 2);
  const rows = results.map((result) => result.rows);
  await pace.each(rows.slice(0, sessionPieces.length).flat(), (row) => {
    state.sessions.set(String(row.id), sessionChangeFromRow(row));
  });
  const tasks = await pace.map(rows.slice(sessionPieces.length).flat(), taskFromRow);
  state.tasks = bySession(unique([...[...state.tasks.values()].flat(), ...tasks]));
}

/** More ids than this are looked up in pieces, with turns of the event loop between. */
const IDS_AT_ONCE = 500;

function piecesOf<T>(ids: readonly T[]): T[][] {
  const count = Math.ceil(ids.length / IDS_AT_ONCE);
  return Array.from({ length: count }, (_, at) => ids.slice(at * IDS_AT_ONCE, (at + 1) * IDS_AT_ONCE));
}

function selectSessions(sessionIds: string[]): InStatement {
  return {
    sql: 'SELECT s.* FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.id = wanted.value',
    args: [JSON.stringify(sessionIds)],
  };
}

function selectTasks(taskIds: readonly { sessionId: string; taskId: string }[]): InStatement {
  return {
    sql: `SELECT t.* FROM json_each(?) AS wanted CROSS JOIN tasks AS t
          ON t.session_id = wanted.value->>0 AND t.id = wanted.value->>1`,
    args: [JSON.stringify(taskIds.map(({ sessionId, taskId }) => [sessionId, columnText(taskId)]))],
  };
}

function selectTaskHomes({ taskIds, agentIds }: BatchScope): InStatement {
  return {
    sql: `SELECT t.agent_id, t.session_id, t.id, t.run_id FROM json_each(?1) AS agent CROSS JOIN json_each(?2) AS wanted
          CROSS JOIN tasks AS t INDEXED BY tasks_by_agent ON t.agent_id = agent.value AND t.id = wanted.value`,
    args: [JSON.stringify(agentIds), JSON.stringify([...new Set(taskIds.map(({ taskId }) => columnText(taskId)))])],
  };
}

function selectObligations(wanted: BatchScope['obligations']): InStatement {
  const keys = wanted.flatMap(({ sessionId, messageIds }) => messageIds.map((id) => [sessionId, columnText(id)]));
  return {
    sql: `SELECT o.* FROM json_each(?) AS wanted CROSS JOIN obligations AS o
          ON o.session_id = wanted.value->>0 AND o.message_id = wanted.value->>1`,
    args: [JSON.stringify(keys)],
  };
}

/** The turn projection remembers no more unanswered messages than this, so no turn can answer an older one unnamed. */
const MAX_OWED_READ = 256;

function selectOwed(sessionId: string): InStatement {
  return {
    sql: `SELECT * FROM obligations WHERE session_id = ? AND state = 'owed' ORDER BY position DESC LIMIT ${MAX_OWED_READ}`,
    args: [columnText(sessionId)],
  };
}

/** A task that is named and runs is read twice. */
function unique(tasks: Task[]): Task[] {
  return [...new Map(tasks.map((task) => [`${task.position} ${task.sessionId}`, task])).values()];
}

function bySession<T extends { sessionId: string }>(values: T[]): Map<string, T[]> {
  const sessions = new Map<string, T[]>();
  for (const value of values) {
    const known = sessions.get(value.sessionId);
    if (known === undefined) sessions.set(value.sessionId, [value]);
    else known.push(value);
  }
  return sessions;
}

function selectLatestTasks(sessionIds: string[]): InStatement {
  return {
    sql: `SELECT t.* FROM json_each(?) AS wanted CROSS JOIN tasks AS t ON t.session_id = wanted.value
          WHERE t.position IN (SELECT position FROM tasks WHERE session_id = wanted.value ORDER BY position DESC LIMIT 64)`,
    args: [JSON.stringify(sessionIds)],
  };
}

function selectRunningTasks(sessionIds: string[]): InStatement {
  return {
    sql: `SELECT t.* FROM json_each(?) AS wanted CROSS JOIN tasks AS t ON t.session_id = wanted.value
          WHERE t.status = 'running'`,
    args: [JSON.stringify(sessionIds)],
  };
}

function selectProducerSessions(producerId: string): InStatement {
  return {
    sql: `SELECT s.* FROM producer_sessions AS p CROSS JOIN sessions AS s ON s.id = p.session_id
          WHERE p.producer_id = ? ORDER BY s.last_event_at DESC LIMIT ${MAX_FANNED_OUT}`,
    args: [producerId],
  };
}

function selectOpenSessions(agentIds: string[]): InStatement {
  return {
    sql: `SELECT s.* FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.agent_id = wanted.value
          WHERE s.state <> 'done' ORDER BY s.last_event_at DESC LIMIT ${MAX_FANNED_OUT}`,
    args: [JSON.stringify(agentIds)],
  };
}

function selectLogs(agentIds: string[]): InStatement {
  return {
    sql: 'SELECT l.* FROM json_each(?) AS wanted CROSS JOIN agent_logs AS l ON l.agent_id = wanted.value',
    args: [JSON.stringify(agentIds)],
  };
}

function sessionChangeFromRow(row: Row): SessionChange {
  return {
    summary: sessionFromRow(row),
    places: JSON.parse(String(row.places)),
    memory: JSON.parse(String(row.memory)),
  };
}

function rowsOf(results: ResultSet[], index: number): Row[] {
  return results[index]?.rows ?? [];
}
