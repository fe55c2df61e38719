import { addTo } from '@interlude/protocol/fields';
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
  MAX_TASK_SESSIONS,
  selectAgentOf,
  selectAgents,
  selectAgentsOfSessions,
  selectAliases,
  selectLatestTasks,
  selectLogs,
  selectObligations,
  selectOpenings,
  selectOpenObligations,
  selectOpenSessions,
  selectOpenTasks,
  selectParts,
  selectProducerSessions,
  selectRecentParts,
  selectSessions,
  selectTaskSessions,
  selectTasks,
} from './batch-lookups';
import type { AgentLog, SessionChange } from './batch-rows';
import { aliasKey, type BatchScope, type MentionedPart, type MentionedTask, partKey } from './batch-scope';

/** The stored state that a batch may touch. */
export interface BatchState {
  position: number;
  producer: ProducerSummary | null;
  sessions: Map<string, SessionChange>;
  agents: Map<string, AgentSummary>;
  /** By session. */
  tasks: Map<string, Task[]>;
  /** Sessions that know a mentioned task by its id, with the runs that they know. */
  taskSessions: MentionedTask[];
  /** By session. */
  obligations: Map<string, Obligation[]>;
  /** By session: openings of given-up requests that a status record may list. */
  givenUp: Map<string, OpeningRow[]>;
  /**
   * By session: the newest rows of its snapshots' parts, in order. If a part has none, the session's newest rows as
   * well.
   */
  parts: Map<string, PartRow[]>;
  /** The parts that were looked up, by `partKey`. */
  lookedUp: ReadonlySet<string>;
  /** Sessions that this producer has written to; read on demand. */
  producerSessionIds: string[];
  /** Quarantined records that name a session which starts with the batch. Filled by `readQuarantined`. */
  quarantined: { sessionId: string; agentId: string; count: number }[];
  /** By agent, for the logs that the batch writes to. */
  logs: Map<string, AgentLog>;
  /** By session: the runner's own id, if that differs. See session-aliases.ts. */
  aliasBySession: Map<string, string>;
  /** The inverse of `aliases`, by `aliasKey`. */
  sessionByAlias: Map<string, string>;
}

export interface PartRow extends ReturnType<typeof PART.read> {
  entityId: string;
  /** Null if the text is longer than the text to compare. */
  payload: string | null;
}

type OpeningRow = ReturnType<typeof OPENING.read>;

const OPENING = shapeOf(events, 'sessionId', 'entityId', 'payload');
const TASK_SESSION = shapeOf(tasks, 'agentId', 'sessionId', 'id', 'runId');
const AGENT_LOG = shapeOf(agentLogs, 'agentId', 'lastLine', 'bytes');
const PART = shapeOf(events, 'sessionId', 'position', 'entityId', 'type', 'turnId');

/** Sends lookups together, in one round trip if they are small. */
class Lookups {
  readonly #lookups: { statements: Iterable<InStatement>; rows: Row[] }[] = [];

  /** @returns an array that `run` fills */
  add(statements: Iterable<InStatement>): Row[] {
    const rows: Row[] = [];
    this.#lookups.push({ statements, rows });
    return rows;
  }

  async run(transaction: WriteTransaction): Promise<void> {
    const targets: Row[][] = [];
    const lookups = this.#lookups;
    function* all(): Generator<InStatement> {
      for (const { statements, rows } of lookups) {
        for (const statement of statements) {
          targets.push(rows);
          yield statement;
        }
      }
    }
    const results = await runStatements(transaction, all());
    for (const [index, { rows }] of results.entries()) for (const row of rows) targets[index]?.push(row);
  }
}

/** Takes one round trip if there is little to read. Otherwise yields to the event loop between the pieces. */
export async function readBatchState(transaction: WriteTransaction, scope: BatchScope): Promise<BatchState> {
  const lookups = new Lookups();
  const producers = lookups.add([{ sql: 'SELECT * FROM producers WHERE id = ?', args: [scope.producerId] }]);
  const ownAgent = lookups.add([selectAgentOf(scope.producerId)]);
  const agents = lookups.add(selectAgents(scope.agentIds));
  const named = lookups.add(selectSessions(scope.sessionIds));
  const mentioned = lookups.add(selectTasks(scope.tasks));
  const sessionAgents = lookups.add(selectAgentsOfSessions(scope.agentlessSessionIds));
  const taskSessions = lookups.add(selectTaskSessions(scope.tasks));
  const latest = lookups.add(selectLatestTasks(scope.causelessSessionIds));
  const messages = lookups.add(selectObligations(scope.messages));
  const openObligations = lookups.add(selectOpenObligations(scope.obligationSessionIds));
  const parts = lookups.add(selectParts(scope.parts));
  const siblings = lookups.add(scope.allProducerSessions ? [selectProducerSessions(scope.producerId)] : []);
  const open = lookups.add(scope.openSessionAgentIds.size > 0 ? [selectOpenSessions(scope.openSessionAgentIds)] : []);
  const logs = lookups.add(selectLogs(scope.logAgentIds));
  const aliases = lookups.add(selectAliases(scope.names()));
  await lookups.run(transaction);

  const yielder = new Yielder();
  await yielder.yieldIfDue();
  const others = new Set([...siblings, ...open].map(({ id }) => String(id)));
  const unread = [...others].filter((id) => !scope.sessionIds.has(id));
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
  const known = await yielder.map([...mentioned, ...latest, ...running, ...presumed], taskFromRow);
  const state: BatchState = {
    position: await transaction.position(),
    producer: producers[0] === undefined ? null : producerFromRow(producers[0]),
    sessions: new Map(changes.map((change) => [change.summary.id, change])),
    agents: new Map(
      (await yielder.map([...ownAgent, ...sessionAgents, ...agents], agentFromRow)).map((agent) => [agent.id, agent]),
    ),
    tasks: await tasksBySession(known, yielder),
    taskSessions: await yielder.map(taskSessions, (row) => {
      const { id: taskId, ...task } = TASK_SESSION.read(row);
      return { taskId, ...task };
    }),
    obligations: await bySession(await yielder.map([...messages, ...openObligations], obligationFromRow), yielder),
    givenUp: await bySession(await yielder.map(openings, OPENING.read), yielder),
    lookedUp: new Set(scope.partKeys),
    parts: await partsBySession(transaction, scope.parts, await yielder.map(parts, partFromRow), yielder),
    quarantined: [],
    producerSessionIds: siblings.map(({ id }) => String(id)),
    aliasBySession: new Map(aliases.map((row) => [String(row.session_id), String(row.alias)])),
    sessionByAlias: new Map(
      aliases.map((row) => [aliasKey(String(row.agent_id), String(row.alias)), String(row.session_id)]),
    ),
    logs: new Map(logs.map(AGENT_LOG.read).map(({ agentId, ...log }) => [agentId, log])),
  };
  await readOtherTaskSessions(transaction, scope.tasks, state, yielder);
  return state;
}

/** Counts the quarantined records of the sessions that start with the batch. */
export async function readQuarantined(
  transaction: WriteTransaction,
  scope: BatchScope,
  state: Pick<BatchState, 'sessions' | 'quarantined'>,
): Promise<void> {
  const started = [...scope.writers].filter(([id]) => !state.sessions.has(id));
  const pairs = started.flatMap(([id, writers]) => [...writers].map((agentId): [string, string] => [id, agentId]));
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

/** Sessions whose open tasks must be read. A repeated status record costs no read. */
function sessionsWithChangedStatus(
  { endedSessionIds, statusKeys }: BatchScope,
  changes: readonly SessionChange[],
): Set<string> {
  const changed = changes.filter(({ summary, memory }) => {
    if (summary.away?.isSilent === true) return true;
    const { status = [], lists = [] } = statusKeys.get(summary.id) ?? {};
    return [...status].some((key) => key !== memory.statusKey) || [...lists].some((key) => key !== memory.listsKey);
  });
  return new Set([...endedSessionIds, ...changed.map(({ summary }) => summary.id)]);
}

/** Open tasks read per session in the first round, and in each further one. */
const FIRST_OPEN_TASKS = 125;
const MORE_OPEN_TASKS = 1_000;

/** Reads all open tasks, in slices beyond a session's first few. */
async function readOpenTasks(
  transaction: WriteTransaction,
  status: 'running' | 'presumed',
  sessionIds: Iterable<string>,
): Promise<Row[]> {
  const found: Row[] = [];
  let unread: (readonly [id: string, after: number])[] = [...sessionIds].map((id) => [id, 0]);
  for (let limit = FIRST_OPEN_TASKS; unread.length > 0; limit = MORE_OPEN_TASKS) {
    const last = new Map<string, { count: number; after: number }>();
    for (const row of await readRows(transaction, selectOpenTasks(status, unread, MORE_OPEN_TASKS / limit, limit))) {
      found.push(row);
      const id = String(row.session_id);
      const { count, after } = last.get(id) ?? { count: 0, after: 0 };
      last.set(id, { count: count + 1, after: Math.max(after, Number(row.position)) });
    }
    unread = [...last].flatMap(([id, { count, after }]) => (count === limit ? [[id, after] as const] : []));
  }
  return found;
}

/** Adds sessions whose tasks another session of the agent mentions, with those tasks. Such sessions are rare. */
async function readOtherTaskSessions(
  transaction: WriteTransaction,
  mentioned: readonly MentionedTask[],
  state: BatchState,
  yielder: Yielder,
): Promise<void> {
  if (state.taskSessions.length === 0) return;
  const sessionsByKey = new Map<string, Set<string>>();
  const keyOf = ({ agentId, taskId }: Pick<MentionedTask, 'agentId' | 'taskId'>, runId: string | null) =>
    JSON.stringify([agentId, columnText(taskId), runId && columnText(runId)]);
  await yielder.each(state.taskSessions, (task) => {
    const key = keyOf(task, task.runId);
    sessionsByKey.set(key, (sessionsByKey.get(key) ?? new Set()).add(task.sessionId));
  });
  const found = new Map<string, MentionedTask>();
  await yielder.each(mentioned, (task) => {
    const candidates = sessionsByKey.get(keyOf(task, task.runId)) ?? sessionsByKey.get(keyOf(task, null));
    // A session that knows the task means its own task, unless another session started the named run.
    if (candidates === undefined || candidates.size > MAX_TASK_SESSIONS || candidates.has(task.sessionId)) return;
    for (const sessionId of candidates)
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
  mentioned: readonly MentionedPart[],
  rows: readonly PartRow[],
  yielder: Yielder,
): Promise<Map<string, PartRow[]>> {
  const byPosition = new Map<number, PartRow>();
  await yielder.each(rows, (row) => byPosition.set(row.position, row));
  const known = new Set(rows.map(({ sessionId, entityId }) => partKey(sessionId, entityId)));
  const unknown = new Map<string, Pick<MentionedPart, 'sessionId' | 'length'>>();
  await yielder.each(mentioned, ({ sessionId, id, length }) => {
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
  const { entityId, ...part } = PART.read(row);
  return { ...part, entityId: entityId ?? '', payload: row.payload === null ? null : String(row.payload) };
}

async function bySession<T extends { sessionId: string }>(
  values: readonly T[],
  yielder: Yielder,
): Promise<Map<string, T[]>> {
  const sessions = new Map<string, T[]>();
  await yielder.each(values, (value) => addTo(sessions, value.sessionId, value));
  return sessions;
}

/** Tasks in the order in which they started, without duplicates from separate reads. */
async function tasksBySession(tasks: readonly Task[], yielder: Yielder): Promise<Map<string, Task[]>> {
  const sessions = await bySession(tasks, yielder);
  await yielder.each(sessions, ([sessionId, all]) => {
    const inOrder = all.sort((a, b) => Number(a.position) - Number(b.position));
    sessions.set(
      sessionId,
      inOrder.filter(({ position }, index) => position !== inOrder[index - 1]?.position),
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
