import type { InStatement, Row } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { agentFromRow, obligationFromRow, producerFromRow, sessionFromRow, taskFromRow } from '@/db/fleet-rows';
import { runInTurns } from '@/db/json-pieces';
import { Pace } from '@/db/next-turn';
import { sessions } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/write-queue';
import { MAX_FANNED_OUT } from '@/lib/protocol/limits';
import type { AgentSummary, Obligation, ProducerSummary, Task } from '@/lib/protocol/read-models';
import type { AgentLog, SessionChange } from './batch-rows';
import { type SaidScope, saidKey, selectSaid } from './said-rows';

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
  /** By session: the newest rows of what its snapshots speak of, in order. */
  said: Map<string, SaidRow[]>;
  /** What was looked for among them, by `saidKey`. */
  lookedUp: ReadonlySet<string>;
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

export interface SaidRow {
  sessionId: string;
  position: number;
  entityId: string;
  type: string;
  turnId: string | null;
  /** Null where it is too long to be what the snapshot says. */
  payload: string | null;
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
  /** Messages and calls that snapshots speak of. */
  said: SaidScope[];
  /** Sessions whose running tasks all end. */
  endedSessionIds: string[];
  /** Sessions in which a turn may answer any task that ended lately. */
  wokenSessionIds: string[];
  /** Whether the batch says something to every session of its producer. */
  allProducerSessions: boolean;
}

/** One round trip where it is little; others get their turns between the pieces of what is much. */
export async function readBatchState(transaction: WriteTransaction, scope: BatchScope): Promise<BatchState> {
  const kinds: Kind[] = [];
  function* statements(): Generator<InStatement> {
    for (const [kind, statement] of statementsFor(scope)) {
      kinds.push(kind);
      yield statement;
    }
  }
  const results = await runInTurns(transaction, statements());
  const rowsOf = (kind: Kind) => results.flatMap(({ rows }, at) => (kinds[at] === kind ? rows : []));

  const pace = new Pace();
  await pace.rest();
  const [counter] = rowsOf('counter');
  const [producer] = rowsOf('producer');
  const siblings = rowsOf('sibling').map(({ id }) => String(id));
  const around = [...new Set([...siblings, ...rowsOf('open').map(({ id }) => String(id))])];
  const named = new Set(scope.sessionIds);
  const unread = around.filter((id) => !named.has(id));
  const sessions = await pace.map(
    [...rowsOf('session'), ...(await readSessions(transaction, unread))],
    sessionChangeFromRow,
  );
  const running = await readRunningTasks(transaction, scope.endedSessionIds);
  const tasks = await pace.map([...rowsOf('task'), ...running], taskFromRow);
  const state: BatchState = {
    position: Number(counter?.position ?? 0),
    producer: producer === undefined ? null : producerFromRow(producer),
    sessions: new Map(sessions.map((change) => [change.summary.id, change])),
    agents: new Map((await pace.map(rowsOf('agent'), agentFromRow)).map((agent) => [agent.id, agent])),
    tasks: await tasksBySession(tasks, pace),
    taskHomes: await pace.map(rowsOf('home'), (row) => ({
      agentId: String(row.agent_id),
      taskId: String(row.id),
      runId: row.run_id === null ? null : String(row.run_id),
      sessionId: String(row.session_id),
    })),
    obligations: await bySession(await pace.map(rowsOf('obligation'), obligationFromRow), pace),
    lookedUp: new Set(await pace.map(scope.said, ({ sessionId, id }) => saidKey(sessionId, id))),
    said: await bySession(
      (await pace.map(rowsOf('said'), saidFromRow)).sort((a, b) => a.position - b.position),
      pace,
    ),
    producerSessionIds: siblings,
    logs: new Map(
      rowsOf('log').map((row) => [String(row.agent_id), { lastLine: Number(row.last_line), bytes: Number(row.bytes) }]),
    ),
  };
  await readElsewhere(transaction, scope.taskIds, state, pace);
  return state;
}

type Kind =
  | 'said'
  | 'counter'
  | 'producer'
  | 'agent'
  | 'session'
  | 'task'
  | 'home'
  | 'obligation'
  | 'sibling'
  | 'open'
  | 'log';

/** Each is made when its turn has come. CROSS JOIN keeps SQLite from turning the lookups by key into a scan. */
function* statementsFor(scope: BatchScope): Generator<[Kind, InStatement]> {
  yield ['counter', 'SELECT position FROM counter'];
  yield ['producer', { sql: 'SELECT * FROM producers WHERE id = ?', args: [scope.producerId] }];
  // the producer's own agent too: a record that does not say whose it is counts as that agent's
  yield ['agent', selectAgentOf(scope.producerId)];
  for (const ids of piecesOf(scope.agentIds)) yield ['agent', selectAgents(ids)];
  for (const ids of piecesOf(scope.sessionIds, SESSIONS_AT_ONCE)) yield ['session', selectSessions(ids)];
  for (const ids of piecesOf(scope.taskIds)) {
    yield ['task', selectTasks(ids)];
    yield ['home', selectTaskHomes(ids)];
  }
  for (const keys of piecesOf(messagesOf(scope))) yield ['obligation', selectObligations(keys)];
  for (const { sessionId, settles } of scope.obligations) if (settles) yield ['obligation', selectOwed(sessionId)];
  for (const statement of selectSaid(scope.said)) yield ['said', statement];
  for (const ids of piecesOf(scope.wokenSessionIds, SESSIONS_AT_ONCE)) yield ['task', selectLatestTasks(ids)];
  if (scope.allProducerSessions) yield ['sibling', selectProducerSessions(scope.producerId)];
  if (scope.openSessionsOf.length > 0) yield ['open', selectOpenSessions(scope.openSessionsOf)];
  for (const ids of piecesOf(scope.logAgentIds)) yield ['log', selectLogs(ids)];
}

function saidFromRow(row: Row): SaidRow {
  return {
    sessionId: String(row.session_id),
    position: Number(row.position),
    entityId: String(row.entity_id),
    type: String(row.type),
    turnId: row.turn_id === null ? null : String(row.turn_id),
    payload: row.payload === null ? null : String(row.payload),
  };
}

async function readSessions(transaction: WriteTransaction, ids: readonly string[]): Promise<Row[]> {
  const results = await runInTurns(transaction, statementsOf(piecesOf(ids, SESSIONS_AT_ONCE), selectSessions));
  return results.flatMap(({ rows }) => rows);
}

/** However many run: those of a session beyond the first few are read by themselves, in pieces. */
async function readRunningTasks(transaction: WriteTransaction, sessionIds: readonly string[]): Promise<Row[]> {
  const found: Row[] = [];
  let unread = sessionIds.map((id) => ({ id, after: 0 }));
  for (let limit = RUNNING_AT_FIRST; unread.length > 0; limit = RUNNING_AT_ONCE) {
    const statements = statementsOf(piecesOf(unread, RUNNING_AT_ONCE / limit), (some) =>
      selectRunningTasks(some, limit),
    );
    const results = await runInTurns(transaction, statements);
    const last = new Map<string, { count: number; after: number }>();
    for (const { rows } of results) {
      for (const row of rows) {
        found.push(row);
        const id = String(row.session_id);
        const { count, after } = last.get(id) ?? { count: 0, after: 0 };
        last.set(id, { count: count + 1, after: Math.max(after, Number(row.position)) });
      }
    }
    unread = [...last].filter(([, { count }]) => count === limit).map(([id, { after }]) => ({ id, after }));
  }
  return found;
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
  await pace.each(await readSessions(transaction, unread), (row) => {
    state.sessions.set(String(row.id), sessionChangeFromRow(row));
  });
  const results = await runInTurns(transaction, statementsOf(piecesOf(found.values()), selectTasks));
  const tasks = await pace.map(
    results.flatMap(({ rows }) => rows),
    taskFromRow,
  );
  state.tasks = await tasksBySession([...[...state.tasks.values()].flat(), ...tasks], pace);
}

/** More ids than this are looked up in pieces, with turns of the event loop between. */
const IDS_AT_ONCE = 500;
/** A session may remember a megabyte, and have a few dozen tasks that are read with it. */
const SESSIONS_AT_ONCE = 8;
/** Running tasks: of each session when there are several, and of one that has more. */
const RUNNING_AT_FIRST = 125;
const RUNNING_AT_ONCE = 1_000;

function* piecesOf<T>(values: Iterable<T>, size = IDS_AT_ONCE): Generator<T[]> {
  let piece: T[] = [];
  for (const value of values) {
    piece.push(value);
    if (piece.length < size) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

function* statementsOf<T>(pieces: Iterable<T>, statement: (piece: T) => InStatement): Generator<InStatement> {
  for (const piece of pieces) yield statement(piece);
}

function selectAgentOf(producerId: string): InStatement {
  return {
    sql: 'SELECT a.* FROM producers AS p CROSS JOIN agents AS a ON a.id = p.agent_id WHERE p.id = ?',
    args: [producerId],
  };
}

function selectAgents(agentIds: string[]): InStatement {
  return {
    sql: 'SELECT a.* FROM json_each(?) AS wanted CROSS JOIN agents AS a ON a.id = wanted.value',
    args: [JSON.stringify(agentIds)],
  };
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

function selectTaskHomes(taskIds: readonly { agentId: string; taskId: string }[]): InStatement {
  const keys = new Set(taskIds.map(({ agentId, taskId }) => JSON.stringify([agentId, columnText(taskId)])));
  return {
    sql: `SELECT t.agent_id, t.session_id, t.id, t.run_id FROM json_each(?) AS wanted
          CROSS JOIN tasks AS t INDEXED BY tasks_by_agent ON t.agent_id = wanted.value->>0 AND t.id = wanted.value->>1`,
    args: [`[${[...keys].join()}]`],
  };
}

function* messagesOf({ obligations }: BatchScope): Generator<[sessionId: string, messageId: string]> {
  for (const { sessionId, messageIds } of obligations) for (const id of messageIds) yield [sessionId, columnText(id)];
}

function selectObligations(messages: readonly [sessionId: string, messageId: string][]): InStatement {
  return {
    sql: `SELECT o.* FROM json_each(?) AS wanted CROSS JOIN obligations AS o
          ON o.session_id = wanted.value->>0 AND o.message_id = wanted.value->>1`,
    args: [JSON.stringify(messages)],
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

async function bySession<T extends { sessionId: string }>(values: readonly T[], pace: Pace): Promise<Map<string, T[]>> {
  const sessions = new Map<string, T[]>();
  await pace.each(values, (value) => {
    const known = sessions.get(value.sessionId);
    if (known === undefined) sessions.set(value.sessionId, [value]);
    else known.push(value);
  });
  return sessions;
}

/** The same of tasks, each once, though it is named and runs, and in the order in which they began. */
async function tasksBySession(tasks: readonly Task[], pace: Pace): Promise<Map<string, Task[]>> {
  const sessions = await bySession(tasks, pace);
  await pace.each(sessions, ([sessionId, all]) => {
    const inOrder = all.sort((a, b) => Number(a.position) - Number(b.position));
    sessions.set(
      sessionId,
      inOrder.filter(({ position }, at) => position !== inOrder[at - 1]?.position),
    );
  });
  return sessions;
}

function selectLatestTasks(sessionIds: string[]): InStatement {
  return {
    sql: `SELECT t.* FROM json_each(?) AS wanted CROSS JOIN tasks AS t ON t.session_id = wanted.value
          WHERE t.position IN (SELECT position FROM tasks WHERE session_id = wanted.value ORDER BY position DESC LIMIT 64)`,
    args: [JSON.stringify(sessionIds)],
  };
}

function selectRunningTasks(sessions: readonly { id: string; after: number }[], limit: number): InStatement {
  return {
    sql: `SELECT t.* FROM json_each(?1) AS wanted CROSS JOIN tasks AS t ON t.session_id = wanted.value->>0
          WHERE t.position IN (SELECT position FROM tasks INDEXED BY tasks_running WHERE session_id = wanted.value->>0
            AND status = 'running' AND position > wanted.value->>1 ORDER BY position LIMIT ?2)`,
    args: [JSON.stringify(sessions.map(({ id, after }) => [id, after])), limit],
  };
}

function selectProducerSessions(producerId: string): InStatement {
  return {
    sql: `SELECT s.id FROM producer_sessions AS p CROSS JOIN sessions AS s ON s.id = p.session_id
          WHERE p.producer_id = ? ORDER BY s.last_event_at DESC LIMIT ${MAX_FANNED_OUT}`,
    args: [producerId],
  };
}

function selectOpenSessions(agentIds: string[]): InStatement {
  return {
    sql: `SELECT s.id FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.agent_id = wanted.value
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

const SESSION_MEMORY = shapeOf(
  sessions,
  'places',
  'memory',
  'isUnderWay',
  'isAway',
  'awayPosition',
  'seenAt',
  'seenPosition',
);

function sessionChangeFromRow(row: Row): SessionChange {
  return { summary: sessionFromRow(row), ...SESSION_MEMORY.read(row) };
}
