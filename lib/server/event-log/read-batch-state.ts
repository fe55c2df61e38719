import { addTo } from '@interlude/protocol/grouped';
import type { AgentSummary, Obligation, ProducerSummary, Task } from '@interlude/protocol/read-models';
import type { InStatement, Row } from '@libsql/client';
import { runStatements } from '@/db/json-statements';
import { agentFromRow, obligationFromRow, producerFromRow, sessionFromRow, taskFromRow } from '@/db/read-model-rows';
import { agentLogs, events, sessions, tasks } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { Yielder } from '@/db/yield-to-loop';
import {
  countQuarantined,
  MAX_HOMES,
  selectAgentOf,
  selectAgents,
  selectAgentsOfSessions,
  selectAliases,
  selectLatestTasks,
  selectLogs,
  selectObligations,
  selectOpenings,
  selectOpenSessions,
  selectOpenTasks,
  selectOwed,
  selectParts,
  selectProducerSessions,
  selectRecentParts,
  selectSessions,
  selectTaskHomes,
  selectTasks,
} from './batch-lookups';
import type { AgentLog, SessionChange } from './batch-rows';
import { aliasKey, type BatchScope, type MentionedPart, type MentionedTask, partKey } from './batch-scope';

/** What a batch may touch, as it was before the batch. */
export interface BatchState {
  /** The counter. */
  position: number;
  producer: ProducerSummary | null;
  sessions: Map<string, SessionChange>;
  agents: Map<string, AgentSummary>;
  /** By session. */
  tasks: Map<string, Task[]>;
  /** Sessions of the same agents that know a task of this batch by its id, with the runs they know. */
  taskHomes: MentionedTask[];
  /** By session. */
  obligations: Map<string, Obligation[]>;
  /** By session: what was asked by the requests that were given up, where a status record may list them. */
  givenUp: Map<string, OpeningRow[]>;
  /**
   * By session: the newest rows of the messages and calls in its snapshots, in order; if one of them has none, the
   * newest rows of the session, too.
   */
  parts: Map<string, PartRow[]>;
  /** Which of those were looked up, by `saidKey`. */
  lookedUp: ReadonlySet<string>;
  /** The sessions this producer has written to; only read when asked for. */
  producerSessionIds: string[];
  /**
   * Records in quarantine that name a session of the batch which has not begun, by session and agent. Empty until
   * `readQuarantined` has read them.
   */
  quarantined: { sessionId: string; agentId: string; count: number }[];
  /** By agent, for the logs that the batch writes to. */
  logs: Map<string, AgentLog>;
  /** By session: the id by which its runner knows it, where that is another. See session-aliases.ts. */
  aliasBySession: Map<string, string>;
  /** The same the other way round, by `aliasKey`. */
  sessionByAlias: Map<string, string>;
}

export interface PartRow extends ReturnType<typeof SAID.read> {
  entityId: string;
  /** Null if it is too long to equal the snapshot's text. */
  payload: string | null;
}

export type OpeningRow = ReturnType<typeof OPENING.read>;

const OPENING = shapeOf(events, 'sessionId', 'entityId', 'payload');
const TASK_HOME = shapeOf(tasks, 'agentId', 'sessionId', 'id', 'runId');
const AGENT_LOG = shapeOf(agentLogs, 'agentId', 'lastLine', 'bytes');
const SAID = shapeOf(events, 'sessionId', 'position', 'entityId', 'type', 'turnId');

/** Look-ups that are sent together: one round trip if they are small. */
class Lookups {
  readonly #asked: { statements: Iterable<InStatement>; rows: Row[] }[] = [];

  /** @returns where the rows will be, once it has run */
  ask(statements: Iterable<InStatement>): Row[] {
    const rows: Row[] = [];
    this.#asked.push({ statements, rows });
    return rows;
  }

  /** Each statement is made only when it is about to be sent. */
  async run(transaction: WriteTransaction): Promise<void> {
    const askers: Row[][] = [];
    const asked = this.#asked;
    function* all(): Generator<InStatement> {
      for (const { statements, rows } of asked) {
        for (const statement of statements) {
          askers.push(rows);
          yield statement;
        }
      }
    }
    const results = await runStatements(transaction, all());
    for (const [at, { rows }] of results.entries()) for (const row of rows) askers[at]?.push(row);
  }
}

/** One round trip if there is little to read; otherwise others get their turns between the pieces. */
export async function readBatchState(transaction: WriteTransaction, scope: BatchScope): Promise<BatchState> {
  const lookups = new Lookups();
  const producers = lookups.ask([{ sql: 'SELECT * FROM producers WHERE id = ?', args: [scope.producerId] }]);
  const ownAgent = lookups.ask([selectAgentOf(scope.producerId)]);
  const agents = lookups.ask(selectAgents(scope.agentIds));
  const named = lookups.ask(selectSessions(scope.sessionIds));
  const spokenOf = lookups.ask(selectTasks(scope.tasks));
  const ofStrays = lookups.ask(selectAgentsOfSessions(scope.agentlessSessionIds));
  const homes = lookups.ask(selectTaskHomes(scope.tasks));
  const latest = lookups.ask(selectLatestTasks(scope.causelessSessionIds));
  const messages = lookups.ask(selectObligations(scope.messages));
  const owed = lookups.ask(selectOwed(scope.obligationSessionIds));
  const said = lookups.ask(selectParts(scope.parts));
  const siblings = lookups.ask(scope.allProducerSessions ? [selectProducerSessions(scope.producerId)] : []);
  const open = lookups.ask(scope.openSessionAgentIds.size > 0 ? [selectOpenSessions(scope.openSessionAgentIds)] : []);
  const logs = lookups.ask(selectLogs(scope.logAgentIds));
  const aliases = lookups.ask(selectAliases(scope.names()));
  await lookups.run(transaction);

  const yielder = new Yielder();
  await yielder.rest();
  const around = new Set([...siblings, ...open].map(({ id }) => String(id)));
  const unread = [...around].filter((id) => !scope.sessionIds.has(id));
  const changes = await yielder.map(
    [...named, ...(await readRows(transaction, selectSessions(unread)))],
    sessionChangeFromRow,
  );
  const touched = sessionsWithChangedStatus(scope, changes);
  const running = await readOpenTasks(transaction, 'running', touched);
  const presumed = await readOpenTasks(transaction, 'presumed', touched);
  const givenUp = changes.flatMap(({ summary: { id }, memory }) =>
    touched.has(id) ? (memory.givenUp ?? []).map((request): [string, string] => [id, request]) : [],
  );
  const openings = givenUp.length === 0 ? [] : await readRows(transaction, selectOpenings(givenUp));
  const known = await yielder.map([...spokenOf, ...latest, ...running, ...presumed], taskFromRow);
  const state: BatchState = {
    position: await transaction.position(),
    producer: producers[0] === undefined ? null : producerFromRow(producers[0]),
    sessions: new Map(changes.map((change) => [change.summary.id, change])),
    agents: new Map(
      (await yielder.map([...ownAgent, ...ofStrays, ...agents], agentFromRow)).map((agent) => [agent.id, agent]),
    ),
    tasks: await tasksBySession(known, yielder),
    taskHomes: await yielder.map(homes, (row) => {
      const { id: taskId, ...home } = TASK_HOME.read(row);
      return { taskId, ...home };
    }),
    obligations: await bySession(await yielder.map([...messages, ...owed], obligationFromRow), yielder),
    givenUp: await bySession(await yielder.map(openings, OPENING.read), yielder),
    lookedUp: new Set(scope.partKeys),
    parts: await partsBySession(transaction, scope.parts, await yielder.map(said, partFromRow), yielder),
    quarantined: [],
    producerSessionIds: siblings.map(({ id }) => String(id)),
    aliasBySession: new Map(aliases.map((row) => [String(row.session_id), String(row.alias)])),
    sessionByAlias: new Map(
      aliases.map((row) => [aliasKey(String(row.agent_id), String(row.alias)), String(row.session_id)]),
    ),
    logs: new Map(logs.map(AGENT_LOG.read).map(({ agentId, ...log }) => [agentId, log])),
  };
  await readOtherHomes(transaction, scope.tasks, state, yielder);
  return state;
}

/** Counts the quarantined records of the sessions that the batch begins. */
export async function readQuarantined(
  transaction: WriteTransaction,
  scope: BatchScope,
  state: Pick<BatchState, 'sessions' | 'quarantined'>,
): Promise<void> {
  const fresh = [...scope.writers].filter(([id]) => !state.sessions.has(id));
  const pairs = fresh.flatMap(([id, writers]) => [...writers].map((agentId): [string, string] => [id, agentId]));
  if (pairs.length > 0) {
    state.quarantined = (await readRows(transaction, countQuarantined(pairs))).map((row) => ({
      sessionId: String(row.session_id),
      agentId: String(row.agent_id),
      count: Number(row.count),
    }));
  }
}

async function readRows(transaction: WriteTransaction, statements: Iterable<InStatement>): Promise<Row[]> {
  const results = await runStatements(transaction, statements);
  return results.flatMap(({ rows }) => rows);
}

/** Sessions of which all tasks that run, or may, are read. A status record that repeats the one before it costs no read. */
function sessionsWithChangedStatus(
  { endedSessionIds, statusKeys }: BatchScope,
  changes: readonly SessionChange[],
): Set<string> {
  const told = changes.filter(({ summary, memory }) => {
    if (summary.away?.isSilent === true) return true;
    const { status = [], lists = [] } = statusKeys.get(summary.id) ?? {};
    return [...status].some((key) => key !== memory.statusKey) || [...lists].some((key) => key !== memory.listsKey);
  });
  return new Set([...endedSessionIds, ...told.map(({ summary }) => summary.id)]);
}

/** How many running tasks are read of each of several sessions, and of one that has more. */
const RUNNING_AT_FIRST = 125;
const RUNNING_AT_ONCE = 1_000;

/** All of them, however many: a session's tasks beyond the first few are read separately, in pieces. */
async function readOpenTasks(
  transaction: WriteTransaction,
  which: 'running' | 'presumed',
  sessionIds: Iterable<string>,
): Promise<Row[]> {
  const found: Row[] = [];
  let unread: (readonly [id: string, after: number])[] = [...sessionIds].map((id) => [id, 0]);
  for (let limit = RUNNING_AT_FIRST; unread.length > 0; limit = RUNNING_AT_ONCE) {
    const last = new Map<string, { count: number; after: number }>();
    for (const row of await readRows(transaction, selectOpenTasks(which, unread, RUNNING_AT_ONCE / limit, limit))) {
      found.push(row);
      const id = String(row.session_id);
      const { count, after } = last.get(id) ?? { count: 0, after: 0 };
      last.set(id, { count: count + 1, after: Math.max(after, Number(row.position)) });
    }
    unread = [...last].flatMap(([id, { count, after }]) => (count === limit ? [[id, after] as const] : []));
  }
  return found;
}

/** Adds the sessions whose tasks another session of their agent speaks of, with those tasks. There is seldom one. */
async function readOtherHomes(
  transaction: WriteTransaction,
  wanted: readonly MentionedTask[],
  state: BatchState,
  yielder: Yielder,
): Promise<void> {
  if (state.taskHomes.length === 0) return;
  const homes = new Map<string, Set<string>>();
  const keyOf = ({ agentId, taskId }: Pick<MentionedTask, 'agentId' | 'taskId'>, runId: string | null) =>
    JSON.stringify([agentId, columnText(taskId), runId && columnText(runId)]);
  await yielder.each(state.taskHomes, (home) => {
    const key = keyOf(home, home.runId);
    homes.set(key, (homes.get(key) ?? new Set()).add(home.sessionId));
  });
  const found = new Map<string, MentionedTask>();
  await yielder.each(wanted, (task) => {
    const may = homes.get(keyOf(task, task.runId)) ?? homes.get(keyOf(task, null));
    // A session that knows the task means its own, unless another session started the named run.
    if (may === undefined || may.size > MAX_HOMES || may.has(task.sessionId)) return;
    for (const sessionId of may)
      found.set(JSON.stringify([sessionId, task.taskId, task.runId]), { ...task, sessionId });
  });
  if (found.size === 0) return;
  const unread = new Set([...found.values()].map(({ sessionId }) => sessionId));
  for (const id of state.sessions.keys()) unread.delete(id);
  await yielder.each(await readRows(transaction, selectSessions(unread)), (row) => {
    state.sessions.set(String(row.id), sessionChangeFromRow(row));
  });
  const tasks = await yielder.map(await readRows(transaction, selectTasks([...found.values()])), taskFromRow);
  state.tasks = await tasksBySession([...[...state.tasks.values()].flat(), ...tasks], yielder);
}

async function partsBySession(
  transaction: WriteTransaction,
  wanted: readonly MentionedPart[],
  said: readonly PartRow[],
  yielder: Yielder,
): Promise<Map<string, PartRow[]>> {
  const byPosition = new Map<number, PartRow>();
  await yielder.each(said, (row) => byPosition.set(row.position, row));
  const known = new Set(said.map(({ sessionId, entityId }) => partKey(sessionId, entityId)));
  const unknown = new Map<string, Pick<MentionedPart, 'sessionId' | 'length'>>();
  await yielder.each(wanted, ({ sessionId, id, length }) => {
    if (known.has(partKey(columnText(sessionId), columnText(id)))) return;
    unknown.set(sessionId, { sessionId, length: Math.max(length, unknown.get(sessionId)?.length ?? 0) });
  });
  if (unknown.size > 0) {
    const recent = await readRows(transaction, selectRecentParts([...unknown.values()]));
    await yielder.each(await yielder.map(recent, partFromRow), (row) => {
      if (!byPosition.has(row.position)) byPosition.set(row.position, row);
    });
  }
  return bySession(
    [...byPosition.values()].sort((a, b) => a.position - b.position),
    yielder,
  );
}

function partFromRow(row: Row): PartRow {
  const { entityId, ...said } = SAID.read(row);
  return { ...said, entityId: entityId ?? '', payload: row.payload === null ? null : String(row.payload) };
}

async function bySession<T extends { sessionId: string }>(
  values: readonly T[],
  yielder: Yielder,
): Promise<Map<string, T[]>> {
  const sessions = new Map<string, T[]>();
  await yielder.each(values, (value) => addTo(sessions, value.sessionId, value));
  return sessions;
}

/** The same for tasks, in the order in which they began; each once, though it may have been read in two ways. */
async function tasksBySession(tasks: readonly Task[], yielder: Yielder): Promise<Map<string, Task[]>> {
  const sessions = await bySession(tasks, yielder);
  await yielder.each(sessions, ([sessionId, all]) => {
    const inOrder = all.sort((a, b) => Number(a.position) - Number(b.position));
    sessions.set(
      sessionId,
      inOrder.filter(({ position }, at) => position !== inOrder[at - 1]?.position),
    );
  });
  return sessions;
}

const SESSION_MEMORY = shapeOf(
  sessions,
  'places',
  'memory',
  'hasEnded',
  'isAway',
  'awayPosition',
  'givesUpAt',
  'seenAt',
  'seenPosition',
);

function sessionChangeFromRow(row: Row): SessionChange {
  return { summary: sessionFromRow(row), ...SESSION_MEMORY.read(row) };
}
