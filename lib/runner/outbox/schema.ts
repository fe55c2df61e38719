/**
 * The outbox's file. `outbox` is its one row of identity, in which `last_seq` is at least the newest number that has
 * left the queue; `queue` holds what waits, dense in `seq`; `poisoned` what the server will never take, with what a
 * person decided about it; `cursors` how far each source has been read, written with what was read.
 */
export const OUTBOX_SCHEMA = [
  `CREATE TABLE outbox (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    producer_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    last_seq INTEGER NOT NULL
  ) STRICT`,
  // `body` last: reading the sizes of the rows must not touch the overflow pages of large bodies
  `CREATE TABLE queue (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT`,
  `CREATE TABLE poisoned (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    epoch INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    reason TEXT NOT NULL,
    poisoned_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'kept',
    decided_at INTEGER
  ) STRICT`,
  'CREATE TABLE cursors (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT',
  'PRAGMA user_version = 2',
];

export const OUTBOX_VERSION = 2;

/**
 * `synchronous = FULL` although the process's own death would not need it: after a power cut a commit that came back
 * undone would give its `seq` to another record, and the server would take that one for a duplicate.
 */
export const OUTBOX_PRAGMAS = [
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA wal_autocheckpoint = 1000',
  'PRAGMA busy_timeout = 2000',
  'PRAGMA cache_size = -8000',
];
