import { MAX_FANNED_OUT } from '@interlude/protocol/limits';
import type { InStatement } from '@libsql/client';
import { chunkStatements } from '@/db/json-statements';
import { columnText } from '@/db/table-rows';
import type { MentionedPart, MentionedTask } from './batch-scope';

/** What a batch is planned from is looked up by keys. CROSS JOIN keeps SQLite from scanning instead. */

/** A session may remember a megabyte, and have a few dozen tasks that are read with it. */
const SESSIONS_AT_ONCE = 8;
/** If more sessions than this know a task by its id, its owner is uncertain unless the run tells. */
export const MAX_HOMES = 16;
/** How many of a task's newest runs in one session are read, and of its newest runs without a name. */
const RUNS_READ = 64;
/** The turn projection remembers at most this many unanswered messages, so no turn can answer an older one unnamed. */
const MAX_OWED_READ = 256;

/** A statement over keys, which it reads by `json_each(?1)`. */
function inGroups<T>(
  keys: Iterable<T>,
  sql: string,
  { size, more = [] }: { size?: number; more?: readonly (string | number)[] } = {},
): Generator<InStatement> {
  return chunkStatements(keys, (json) => ({ sql, args: [json, ...more] }), undefined, size);
}

export function selectAgents(ids: Iterable<string>): Iterable<InStatement> {
  return inGroups(ids, 'SELECT a.* FROM json_each(?) AS wanted CROSS JOIN agents AS a ON a.id = wanted.value');
}

/** The producer's own agent: a record that names no agent counts as that one's. */
export function selectAgentOf(producerId: string): InStatement {
  return {
    sql: 'SELECT a.* FROM producers AS p CROSS JOIN agents AS a ON a.id = p.agent_id WHERE p.id = ?',
    args: [producerId],
  };
}

/** The agents of these sessions. */
export function selectAgentsOfSessions(sessionIds: Iterable<string>): Iterable<InStatement> {
  const sql = `SELECT a.* FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.id = wanted.value
    CROSS JOIN agents AS a ON a.id = s.agent_id`;
  return inGroups(sessionIds, sql);
}

/** How many records of an agent that name a session are in quarantine: out of an index that has all it takes. */
export function countQuarantined(pairs: Iterable<[sessionId: string, agentId: string]>): Iterable<InStatement> {
  const sql = `SELECT value->>0 AS session_id, value->>1 AS agent_id, (
      SELECT count(*) FROM quarantine INDEXED BY quarantine_missing
      WHERE session_id = wanted.value->>0 AND agent_id = wanted.value->>1
        AND session_id IS NOT NULL AND ifnull(parked, 'parked') = 'parked'
    ) AS count FROM json_each(?) AS wanted`;
  return inGroups(pairs, sql);
}

export function selectSessions(ids: Iterable<string>): Iterable<InStatement> {
  const sql = 'SELECT s.* FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.id = wanted.value';
  return inGroups(ids, sql, { size: SESSIONS_AT_ONCE });
}

/** The aliases of these sessions, and the sessions for which these are their agents' aliases. */
export function selectAliases(names: Iterable<[name: string, agentId: string | null]>): Iterable<InStatement> {
  const sql = `SELECT a.* FROM json_each(?1) AS wanted CROSS JOIN session_aliases AS a
      ON a.session_id = wanted.value->>0
    UNION ALL SELECT a.* FROM json_each(?1) AS wanted CROSS JOIN session_aliases AS a
      ON a.alias = wanted.value->>0 AND a.agent_id = wanted.value->>1`;
  return chunkStatements(
    names,
    (json) => ({ sql, args: [json] }),
    ([name, agentId]) => [columnText(name), agentId === null ? null : columnText(agentId)],
  );
}

export function selectLogs(agentIds: Iterable<string>): Iterable<InStatement> {
  const sql = 'SELECT l.* FROM json_each(?) AS wanted CROSS JOIN agent_logs AS l ON l.agent_id = wanted.value';
  return inGroups(agentIds, sql);
}

/**
 * What a session knows about a task: the run that is named, its newest runs, and the newest ones without a name. An id
 * may have been used any number of times.
 */
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
  yield* inGroups(keys(false), newest('tasks_by_id', '', RUNS_READ));
  yield* inGroups(keys(false), newest('tasks_by_run', 'AND run_id IS NULL', RUNS_READ));
  yield* inGroups(keys(true), newest('tasks_by_run', 'AND run_id = wanted.value->>3', 1));
}

/** Sessions that know a task by its id, and those that started the named run: one more than MAX_HOMES of each. */
export function* selectTaskHomes(tasks: readonly MentionedTask[]): Iterable<InStatement> {
  const homes = (index: string, runId: string, which: string) =>
    `SELECT t.agent_id, t.session_id, t.id, ${runId} AS run_id FROM json_each(?1) AS wanted CROSS JOIN tasks AS t
     WHERE t.rowid IN (SELECT min(rowid) FROM tasks INDEXED BY ${index}
       WHERE agent_id = wanted.value->>0 AND id = wanted.value->>1 ${which} GROUP BY session_id LIMIT ${MAX_HOMES + 1})`;
  const keys = (isNamed: boolean) =>
    distinct(tasks, ({ agentId, taskId, runId }) => {
      const key = [agentId, columnText(taskId)];
      return !isNamed ? key : runId === null ? null : [...key, columnText(runId)];
    });
  yield* inGroups(keys(false), homes('tasks_by_agent', 'NULL', ''));
  yield* inGroups(keys(true), homes('tasks_by_run', 't.run_id', 'AND run_id = wanted.value->>2'));
}

/** Each key once, made only when it is asked for: there may be a hundred thousand. */
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
  return inGroups(sessionIds, sql, { size: SESSIONS_AT_ONCE });
}

/** Tasks that run, and those that are only presumed not to. */
const OPEN_TASKS = {
  running: { index: 'tasks_running', is: `status = 'running'` },
  presumed: { index: 'tasks_presumed', is: 'presumed IS NOT NULL' },
};

/** @param sessions each with the position after which its tasks are read */
export function selectOpenTasks(
  which: keyof typeof OPEN_TASKS,
  sessions: readonly (readonly [id: string, after: number])[],
  size: number,
  limit: number,
): Iterable<InStatement> {
  const { index, is } = OPEN_TASKS[which];
  const sql = `SELECT t.* FROM json_each(?1) AS wanted CROSS JOIN tasks AS t ON t.session_id = wanted.value->>0
    WHERE t.position IN (SELECT position FROM tasks INDEXED BY ${index} WHERE session_id = wanted.value->>0
      AND ${is} AND position > wanted.value->>1 ORDER BY position LIMIT ?2)`;
  return inGroups(sessions, sql, { size, more: [limit] });
}

/** What was last asked under the ids of requests. */
export function selectOpenings(requests: Iterable<[sessionId: string, requestId: string]>): Iterable<InStatement> {
  const sql = `SELECT e.* FROM json_each(?) AS wanted CROSS JOIN events AS e ON e.position = (
      SELECT max(position) FROM events WHERE session_id = wanted.value->>0 AND entity_id = wanted.value->>1
        AND name IN ('request:opened', 'request:resolved') AND name = 'request:opened')`;
  return chunkStatements(
    requests,
    (json) => ({ sql, args: [json] }),
    ([sessionId, id]) => [sessionId, columnText(id)],
  );
}

export function selectObligations(messages: Iterable<[sessionId: string, messageId: string]>): Iterable<InStatement> {
  const sql = `SELECT o.* FROM json_each(?) AS wanted CROSS JOIN obligations AS o
    ON o.session_id = wanted.value->>0 AND o.message_id = wanted.value->>1`;
  const keyOf = ([sessionId, id]: [string, string]) => [sessionId, columnText(id)];
  return chunkStatements(messages, (json) => ({ sql, args: [json] }), keyOf);
}

export function* selectOwed(sessionIds: Iterable<string>): Iterable<InStatement> {
  const sql = `SELECT * FROM obligations WHERE session_id = ? AND state = 'owed' ORDER BY position DESC LIMIT ${MAX_OWED_READ}`;
  for (const id of sessionIds) yield { sql, args: [columnText(id)] };
}

export function selectProducerSessions(producerId: string): InStatement {
  return {
    sql: `SELECT s.id FROM producer_sessions AS p CROSS JOIN sessions AS s ON s.id = p.session_id
          WHERE p.producer_id = ? ORDER BY s.last_event_at DESC LIMIT ${MAX_FANNED_OUT}`,
    args: [producerId],
  };
}

export function selectOpenSessions(agentIds: Iterable<string>): InStatement {
  return {
    sql: `SELECT s.id FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.agent_id = wanted.value
          WHERE NOT s.has_ended ORDER BY s.last_event_at DESC LIMIT ${MAX_FANNED_OUT}`,
    args: [JSON.stringify([...agentIds])],
  };
}

/** This many of its newest rows have all of a message or call, unless it has streamed many deltas since it began. */
export const MAX_ROWS_PER_PART = 8;
/** Roughly how much JSON an event has besides its text. */
const ROW_FRAME = 1_024;

/** The newest rows of each; without the payload if that is longer than the text to compare with. */
export function selectParts(said: readonly MentionedPart[]): Iterable<InStatement> {
  return chunkStatements(
    said,
    (json) => ({
      sql: `SELECT e.position, e.session_id, e.entity_id, e.type, e.turn_id,
              iif(octet_length(e.payload) <= wanted.value->>2, e.payload, NULL) AS payload
            FROM json_each(?) AS wanted CROSS JOIN events AS e
            WHERE e.position IN (SELECT position FROM events INDEXED BY events_by_entity
              WHERE session_id = wanted.value->>0 AND entity_id = wanted.value->>1 AND type <> 'CUSTOM'
              ORDER BY position DESC LIMIT ${MAX_ROWS_PER_PART})`,
      args: [json],
    }),
    ({ sessionId, id, length }) => [columnText(sessionId), columnText(id), length * 6 + ROW_FRAME],
  );
}

/** How far back a session is searched for a part that its snapshot lists under an unknown id. */
const RECENT = { rows: 1_000, bytes: 4 * 1024 * 1024 };
/** For all sessions of a batch together. Sessions beyond the hundredth are not searched. */
const RECENT_IN_ALL = { rows: 10_000, bytes: 16 * 1024 * 1024, sessions: 100 };

/** A run's input repeats the whole conversation. Longer ones are not searched for their newest messages. */
const MOST_INPUT_BYTES = 256 * 1024;

/** Selects the newest rows of each session, with the inputs of its runs. @param length as in `SaidScope`, of the longest part of the session */
export function selectRecentParts(
  sessions: readonly Pick<MentionedPart, 'sessionId' | 'length'>[],
): Iterable<InStatement> {
  const some = sessions.slice(0, RECENT_IN_ALL.sessions);
  const share = (most: 'rows' | 'bytes') => Math.min(RECENT[most], Math.floor(RECENT_IN_ALL[most] / some.length));
  return chunkStatements(
    some,
    (json) => ({
      sql: `SELECT e.position, e.session_id, e.entity_id, e.type, e.turn_id,
              iif(octet_length(e.payload) <= iif(e.type = 'RUN_STARTED', ${MOST_INPUT_BYTES}, wanted.value->>1),
                e.payload, NULL) AS payload
            FROM json_each(?) AS wanted CROSS JOIN events AS e
            WHERE (e.entity_id IS NOT NULL OR e.type = 'RUN_STARTED') AND e.type <> 'CUSTOM' AND e.position IN
              (SELECT position FROM
                (SELECT position, sum(bytes) OVER (ORDER BY position DESC) AS bytes FROM
                  (SELECT position, octet_length(payload) AS bytes FROM events INDEXED BY events_by_session
                    WHERE session_id = wanted.value->>0 ORDER BY position DESC LIMIT ${share('rows')}))
                WHERE bytes <= ${share('bytes')})`,
      args: [json],
    }),
    ({ sessionId, length }) => [columnText(sessionId), length * 6 + ROW_FRAME],
  );
}
