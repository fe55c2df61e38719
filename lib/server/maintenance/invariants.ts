import type { Row } from '@libsql/client';

/** Something that holds between rows after every commit. */
export interface Invariant {
  name: string;
  /** Answers the rows that break it. With `next`, of those whose key is above `:after` and not above `:until`. */
  sql: string;
  /** The rows that it goes through piece by piece; null for what is looked up at once. */
  next: { table: string; key: string; rows: number } | null;
  what: (row: Row) => string;
}

/** So many rows take a few tens of milliseconds. */
const ROWS = 2_000;

const inRange = (key: string) => `${key} > :after AND ${key} <= :until`;
const by = (table: string, key = 'position', rows = ROWS) => ({ table, key, rows });
const told = (value: unknown) => JSON.stringify(value);

/** What has a position of its own, and what carries the one of its last change. By an index each, but for a few small ones. */
const POSITIONED: readonly (readonly [table: string, column: string])[] = [
  ['events', 'position'],
  ['log_lines', 'position'],
  ['insights', 'position'],
  ['quarantine', 'position'],
  ['sessions', 'updated_position'],
  ['agents', 'updated_position'],
  ['tasks', 'updated_position'],
  ['obligations', 'updated_position'],
  ['inbox', 'updated_position'],
  ['webhook_deliveries', 'position'],
];

export const INVARIANTS: readonly Invariant[] = [
  {
    name: 'removed entries of the audit',
    sql: 'SELECT number FROM audit WHERE number <= (SELECT max(number) FROM audit_start) ORDER BY number LIMIT 1',
    next: null,
    what: ({ number }) => `entry ${number} of the audit was removed, and is there`,
  },
  {
    name: 'asks',
    sql: `SELECT a.session_id AS session, a.command_id AS id FROM asks AS a LEFT JOIN commands AS c ON c.id = a.command_id
      WHERE ${inRange('a.rowid')} AND a.command_id IS NOT NULL AND c.id IS NULL`,
    next: by('asks', 'rowid'),
    what: ({ session, id }) =>
      `the command ${told(id)} that was asked for in the session ${told(session)} is not there`,
  },
  {
    name: 'counter',
    sql: `SELECT * FROM (${POSITIONED.map(
      ([table, column]) =>
        `SELECT '${table}' AS name, max(${column}) AS newest, (SELECT ifnull(max(position), 0) FROM counter) AS counted FROM ${table}`,
    ).join(' UNION ALL ')}) WHERE newest > counted`,
    next: null,
    what: ({ name, newest, counted }) => `${name} has position ${newest}, and the counter is at ${counted}`,
  },
  ...(['log_lines', 'quarantine'] as const).map((other) => ({
    name: 'positions',
    sql: `SELECT one.position AS position FROM ${other} AS one JOIN events AS other ON other.position = one.position
      WHERE ${inRange('one.position')}`,
    next: by(other),
    what: ({ position }: Row) => `position ${position} is both of an event and of a row of ${other}`,
  })),
  {
    name: 'producers',
    sql: `SELECT e.producer_id AS id, max(e.seq) AS seq, e.epoch AS epoch, p.last_seq AS last_seq, p.epoch AS newest
      FROM events AS e LEFT JOIN producers AS p ON p.id = e.producer_id
      WHERE ${inRange('e.position')} AND (p.id IS NULL OR e.epoch > p.epoch OR (e.epoch = p.epoch AND e.seq > p.last_seq))
      GROUP BY e.producer_id, e.epoch`,
    next: by('events'),
    what: ({ id, seq, epoch, last_seq: last, newest }) =>
      last === null
        ? `the outbox ${told(id)} has events and is not known`
        : `the outbox ${told(id)} has event ${seq} of epoch ${epoch}, and is known up to ${last} of ${newest}: it would send what is there once more`,
  },
  {
    name: 'sessions',
    sql: `SELECT s.id AS id, s.agent_id AS agent FROM sessions AS s LEFT JOIN agents AS a ON a.id = s.agent_id
      WHERE ${inRange('s.number')} AND a.id IS NULL`,
    next: by('sessions', 'number'),
    what: ({ id, agent }) => `the agent ${told(agent)} of the session ${told(id)} is not there`,
  },
  {
    name: 'events',
    sql: `SELECT e.session_id AS id, count(*) AS count FROM events AS e LEFT JOIN sessions AS s ON s.id = e.session_id
      WHERE ${inRange('e.position')} AND s.id IS NULL GROUP BY e.session_id`,
    next: by('events'),
    what: ({ id, count }) => `the session ${told(id)} of ${count} events is not there`,
  },
  {
    name: 'turns of events',
    // what retention has cut off goes piece by piece
    sql: `SELECT e.session_id AS session, e.turn_id AS turn, count(*) AS count FROM events AS e
      LEFT JOIN turns AS t ON t.session_id = e.session_id AND t.id = e.turn_id
      LEFT JOIN sessions AS s ON s.id = e.session_id
      WHERE ${inRange('e.position')} AND e.turn_id IS NOT NULL AND e.turn_id NOT LIKE 'task:%' AND t.id IS NULL
        AND e.position > ifnull(s.removed_up_to, 0)
      GROUP BY e.session_id, e.turn_id`,
    next: by('events'),
    what: ({ session, turn, count }) =>
      `the turn ${told(turn)} of ${count} events of the session ${told(session)} is not there`,
  },
  ...(['turns', 'tasks', 'obligations'] as const).map((table) => ({
    name: table,
    sql: `SELECT t.session_id AS id, count(*) AS count FROM ${table} AS t LEFT JOIN sessions AS s ON s.id = t.session_id
      WHERE ${inRange('t.rowid')} AND s.id IS NULL GROUP BY t.session_id`,
    next: by(table, 'rowid'),
    what: ({ id, count }: Row) => `the session ${told(id)} of ${count} ${table} is not there`,
  })),
  {
    name: 'removed turns',
    sql: `SELECT t.session_id AS session, count(*) AS count FROM turns AS t JOIN sessions AS s ON s.id = t.session_id
      WHERE ${inRange('t.rowid')} AND t.position <= s.removed_up_to GROUP BY t.session_id`,
    next: by('turns', 'rowid'),
    what: ({ session, count }) => `${count} turns of the session ${told(session)} were removed, and are there`,
  },
  {
    name: 'turns of tasks',
    sql: `SELECT k.session_id AS session, k.id AS id, e.value AS turn FROM tasks AS k,
        json_each(json_array(k.body->>'$.startedInTurnId', k.body->>'$.answeredInTurnId')) AS e
      LEFT JOIN turns AS t ON t.session_id = k.session_id AND t.id = e.value
      WHERE ${inRange('k.rowid')} AND e.value IS NOT NULL AND t.id IS NULL`,
    next: by('tasks', 'rowid', 500),
    what: ({ session, id, turn }) =>
      `the turn ${told(turn)} of the task ${told(id)} of the session ${told(session)} is not there`,
  },
  {
    name: 'log lines',
    sql: `SELECT l.agent_id AS id, max(l.line) AS line, g.last_line AS last FROM log_lines AS l
      LEFT JOIN agent_logs AS g ON g.agent_id = l.agent_id
      WHERE ${inRange('l.position')} AND (g.agent_id IS NULL OR l.line > g.last_line) GROUP BY l.agent_id`,
    next: by('log_lines'),
    what: ({ id, line, last }) => `the log of ${told(id)} has line ${line}, and is known to end at ${last}`,
  },
  {
    name: 'log index',
    sql: `SELECT c.id AS id FROM log_chunks AS c LEFT JOIN log_search_docsize AS d ON d.id = c.id
      WHERE ${inRange('c.id')} AND d.id IS NULL`,
    next: by('log_chunks', 'id'),
    what: ({ id }) => `the lines of chunk ${id} can't be found by their text`,
  },
  {
    name: 'attachments',
    sql: `SELECT a.session_id AS session, a.hash AS hash, a.bytes AS bytes, ifnull(sum(octet_length(p.bytes)), 0) AS kept
      FROM attachments AS a LEFT JOIN attachment_parts AS p ON p.session_id = a.session_id AND p.hash = a.hash
      WHERE ${inRange('a.rowid')} GROUP BY a.session_id, a.hash HAVING kept <> a.bytes`,
    next: by('attachments', 'rowid', 100),
    what: ({ session, hash, bytes, kept }) =>
      `of the file ${told(hash)} of the session ${told(session)} ${kept} of ${bytes} bytes are there`,
  },
];
