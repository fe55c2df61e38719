import { MAX_FAN_OUT } from '@interlude/protocol/limits';
import type { InStatement } from '@libsql/client';
import { chunkStatements } from '@/db/json-statements';
import { columnText } from '@/db/table-rows';
import type { MentionedPart, MentionedTask } from './batch-scope';

/** Lookups by key for planning a batch. CROSS JOIN keeps SQLite from scanning. */

/** Sessions per statement. A session may hold a megabyte of memory, and a few dozen tasks are read with it. */
const SESSIONS_AT_ONCE = 8;
/** If more sessions than this know a task id, only a run id proves the owner. */
export const MAX_TASK_SESSIONS = 16;
/** Newest runs of a task to read per session, and newest unnamed runs. */
const MAX_RUNS = 64;
/** The turn projection tracks at most this many unanswered messages. */
const MAX_OBLIGATIONS = 256;

export function selectAgents(ids: Iterable<string>): Iterable<InStatement> {
  return chunkStatements(ids, 'SELECT a.* FROM json_each(?) AS wanted CROSS JOIN agents AS a ON a.id = wanted.value');
}

/** A record without an agent counts towards the producer's own agent. */
export function selectAgentOf(producerId: string): InStatement {
  return {
    sql: 'SELECT a.* FROM producers AS p CROSS JOIN agents AS a ON a.id = p.agent_id WHERE p.id = ?',
    args: [producerId],
  };
}

export function selectAgentsOfSessions(sessionIds: Iterable<string>): Iterable<InStatement> {
  const sql = `SELECT a.* FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.id = wanted.value
    CROSS JOIN agents AS a ON a.id = s.agent_id`;
  return chunkStatements(sessionIds, sql);
}

/** Counts an agent's quarantined records that name a session. The index covers the query. */
export function countQuarantined(pairs: Iterable<[sessionId: string, agentId: string]>): Iterable<InStatement> {
  const sql = `SELECT value->>0 AS session_id, value->>1 AS agent_id, (
      SELECT count(*) FROM quarantine INDEXED BY quarantine_missing
      WHERE session_id = wanted.value->>0 AND agent_id = wanted.value->>1
        AND session_id IS NOT NULL AND ifnull(parked, 'parked') = 'parked'
    ) AS count FROM json_each(?) AS wanted`;
  return chunkStatements(pairs, sql);
}

export function selectSessions(ids: Iterable<string>): Iterable<InStatement> {
  const sql = 'SELECT s.* FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.id = wanted.value';
  return chunkStatements(ids, sql, undefined, { max: SESSIONS_AT_ONCE });
}

/** Reads the aliases of these sessions, and the sessions with these names as aliases. */
export function selectAliases(names: Iterable<[name: string, agentId: string | null]>): Iterable<InStatement> {
  const sql = `SELECT a.* FROM json_each(?1) AS wanted CROSS JOIN session_aliases AS a
      ON a.session_id = wanted.value->>0
    UNION ALL SELECT a.* FROM json_each(?1) AS wanted CROSS JOIN session_aliases AS a
      ON a.alias = wanted.value->>0 AND a.agent_id = wanted.value->>1`;
  return chunkStatements(names, sql, ([name, agentId]) => [
    columnText(name),
    agentId === null ? null : columnText(agentId),
  ]);
}

export function selectLogs(agentIds: Iterable<string>): Iterable<InStatement> {
  const sql = 'SELECT l.* FROM json_each(?) AS wanted CROSS JOIN agent_logs AS l ON l.agent_id = wanted.value';
  return chunkStatements(agentIds, sql);
}

/** The named run of a task, its newest runs, and the newest unnamed ones. Runs can reuse a task id any number of times. */
export function* selectTasks(tasks: readonly MentionedTask[]): Iterable<InStatement> {
  const newest = (index: string, run: string, limit: number) =>
    `SELECT t.* FROM json_each(?1) AS wanted CROSS JOIN tasks AS t ON t.session_id = wanted.value->>2
     WHERE t.position IN (SELECT position FROM tasks INDEXED BY ${index}
       WHERE agent_id = wanted.value->>0 AND id = wanted.value->>1 AND session_id = wanted.value->>2 ${run}
       ORDER BY position DESC LIMIT ${limit})`;
  const keys = (isNamed: boolean) =>
    distinct(tasks, ({ agentId, sessionId, taskId, runId }) => {
      const key = [agentId, columnText(taskId), sessionId];
      return !isNamed ? key : runId === null ? null : [...key, columnText(runId)];
    });
  yield* chunkStatements(keys(false), newest('tasks_by_id', '', MAX_RUNS));
  yield* chunkStatements(keys(false), newest('tasks_by_run', 'AND run_id IS NULL', MAX_RUNS));
  yield* chunkStatements(keys(true), newest('tasks_by_run', 'AND run_id = wanted.value->>3', 1));
}

/** Sessions that know a task by its id, and sessions that started the named run: at most MAX_TASK_SESSIONS + 1 of each. */
export function* selectTaskSessions(tasks: readonly MentionedTask[]): Iterable<InStatement> {
  const select = (index: string, runId: string, where: string) =>
    `SELECT t.agent_id, t.session_id, t.id, ${runId} AS run_id FROM json_each(?1) AS wanted CROSS JOIN tasks AS t
     WHERE t.rowid IN (SELECT min(rowid) FROM tasks INDEXED BY ${index}
       WHERE agent_id = wanted.value->>0 AND id = wanted.value->>1 ${where} GROUP BY session_id LIMIT ${MAX_TASK_SESSIONS + 1})`;
  const keys = (isNamed: boolean) =>
    distinct(tasks, ({ agentId, taskId, runId }) => {
      const key = [agentId, columnText(taskId)];
      return !isNamed ? key : runId === null ? null : [...key, columnText(runId)];
    });
  yield* chunkStatements(keys(false), select('tasks_by_agent', 'NULL', ''));
  yield* chunkStatements(keys(true), select('tasks_by_run', 't.run_id', 'AND run_id = wanted.value->>2'));
}

/** Yields each key once, lazily, because there may be a hundred thousand. */
function* distinct(
  tasks: Iterable<MentionedTask>,
  toKey: (task: MentionedTask) => string[] | null,
): Generator<string[]> {
  const seen = new Set<string>();
  for (const task of tasks) {
    const key = toKey(task);
    if (key === null) continue;
    const json = JSON.stringify(key);
    if (seen.has(json)) continue;
    seen.add(json);
    yield key;
  }
}

export function selectLatestTasks(sessionIds: Iterable<string>): Iterable<InStatement> {
  const sql = `SELECT t.* FROM json_each(?) AS wanted CROSS JOIN tasks AS t ON t.session_id = wanted.value
    WHERE t.position IN (SELECT position FROM tasks WHERE session_id = wanted.value ORDER BY position DESC LIMIT 64)`;
  return chunkStatements(sessionIds, sql, undefined, { max: SESSIONS_AT_ONCE });
}

/** Reads running tasks, and tasks only presumed to have ended. */
const OPEN_TASKS = {
  running: { index: 'tasks_running', is: `status = 'running'` },
  presumed: { index: 'tasks_presumed', is: 'presumed IS NOT NULL' },
};

/** @param sessions with the position after which to read each one's tasks */
export function selectOpenTasks(
  status: keyof typeof OPEN_TASKS,
  sessions: readonly (readonly [id: string, after: number])[],
  max: number,
  limit: number,
): Iterable<InStatement> {
  const { index, is } = OPEN_TASKS[status];
  const sql = `SELECT t.* FROM json_each(?1) AS wanted CROSS JOIN tasks AS t ON t.session_id = wanted.value->>0
    WHERE t.position IN (SELECT position FROM tasks INDEXED BY ${index} WHERE session_id = wanted.value->>0
      AND ${is} AND position > wanted.value->>1 ORDER BY position LIMIT ?2)`;
  return chunkStatements(sessions, sql, undefined, { max, args: [limit] });
}

/** Reads the last opening of each request id. */
export function selectOpenings(requests: Iterable<[sessionId: string, requestId: string]>): Iterable<InStatement> {
  const sql = `SELECT e.* FROM json_each(?) AS wanted CROSS JOIN events AS e ON e.position = (
      SELECT max(position) FROM events WHERE session_id = wanted.value->>0 AND entity_id = wanted.value->>1
        AND name IN ('request:opened', 'request:resolved') AND name = 'request:opened')`;
  return chunkStatements(requests, sql, ([sessionId, id]) => [sessionId, columnText(id)]);
}

export function selectObligations(messages: Iterable<[sessionId: string, messageId: string]>): Iterable<InStatement> {
  const sql = `SELECT o.* FROM json_each(?) AS wanted CROSS JOIN obligations AS o
    ON o.session_id = wanted.value->>0 AND o.message_id = wanted.value->>1`;
  return chunkStatements(messages, sql, ([sessionId, id]) => [sessionId, columnText(id)]);
}

export function* selectOpenObligations(sessionIds: Iterable<string>): Iterable<InStatement> {
  const sql = `SELECT * FROM obligations WHERE session_id = ? AND state = 'owed' ORDER BY position DESC LIMIT ${MAX_OBLIGATIONS}`;
  for (const id of sessionIds) yield { sql, args: [columnText(id)] };
}

export function selectProducerSessions(producerId: string): InStatement {
  return {
    sql: `SELECT s.id FROM producer_sessions AS p CROSS JOIN sessions AS s ON s.id = p.session_id
          WHERE p.producer_id = ? ORDER BY s.last_event_at DESC LIMIT ${MAX_FAN_OUT}`,
    args: [producerId],
  };
}

export function selectOpenSessions(agentIds: Iterable<string>): InStatement {
  return {
    sql: `SELECT s.id FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.agent_id = wanted.value
          WHERE NOT s.has_ended ORDER BY s.last_event_at DESC LIMIT ${MAX_FAN_OUT}`,
    args: [JSON.stringify([...agentIds])],
  };
}

/** Newest rows to read per part. Enough for a whole message or call, except one that has streamed many deltas. */
export const MAX_ROWS_PER_PART = 8;
/** Approximate JSON size of an event without its text. */
const EVENT_OVERHEAD_BYTES = 1_024;

/** Reads the newest rows of each part. Omits payloads longer than the text to compare. */
export function selectParts(parts: readonly MentionedPart[]): Iterable<InStatement> {
  return chunkStatements(
    parts,
    `SELECT e.position, e.session_id, e.entity_id, e.type, e.turn_id,
        iif(octet_length(e.payload) <= wanted.value->>2, e.payload, NULL) AS payload
      FROM json_each(?) AS wanted CROSS JOIN events AS e
      WHERE e.position IN (SELECT position FROM events INDEXED BY events_by_entity
        WHERE session_id = wanted.value->>0 AND entity_id = wanted.value->>1 AND type <> 'CUSTOM'
        ORDER BY position DESC LIMIT ${MAX_ROWS_PER_PART})`,
    ({ sessionId, id, length }) => [columnText(sessionId), columnText(id), length * 6 + EVENT_OVERHEAD_BYTES],
  );
}

/** Limits of the search for a part that a session's snapshot lists under an unknown id. */
const RECENT = { rows: 1_000, bytes: 4 * 1024 * 1024 };
/** The same limits for all sessions of a batch. Sessions beyond the hundredth are not searched. */
const RECENT_IN_ALL = { rows: 10_000, bytes: 16 * 1024 * 1024, sessions: 100 };

/** A run's input repeats the whole conversation. The newest messages of longer inputs are not searched. */
const MAX_INPUT_BYTES = 256 * 1024;

/**
 * Reads the newest rows of each session, with the inputs of its runs. `length` is the length of the session's longest
 * unknown part.
 */
export function selectRecentParts(
  sessions: readonly Pick<MentionedPart, 'sessionId' | 'length'>[],
): Iterable<InStatement> {
  const some = sessions.slice(0, RECENT_IN_ALL.sessions);
  const share = (limit: 'rows' | 'bytes') => Math.min(RECENT[limit], Math.floor(RECENT_IN_ALL[limit] / some.length));
  return chunkStatements(
    some,
    `SELECT e.position, e.session_id, e.entity_id, e.type, e.turn_id,
        iif(octet_length(e.payload) <= iif(e.type = 'RUN_STARTED', ${MAX_INPUT_BYTES}, wanted.value->>1),
          e.payload, NULL) AS payload
      FROM json_each(?) AS wanted CROSS JOIN events AS e
      WHERE (e.entity_id IS NOT NULL OR e.type = 'RUN_STARTED') AND e.type <> 'CUSTOM' AND e.position IN
        (SELECT position FROM
          (SELECT position, sum(bytes) OVER (ORDER BY position DESC) AS bytes FROM
            (SELECT position, octet_length(payload) AS bytes FROM events INDEXED BY events_by_session
              WHERE session_id = wanted.value->>0 ORDER BY position DESC LIMIT ${share('rows')}))
          WHERE bytes <= ${share('bytes')})`,
    ({ sessionId, length }) => [columnText(sessionId), length * 6 + EVENT_OVERHEAD_BYTES],
  );
}
