import type { Reader } from './reader';
import type { Writes } from './writes';

/**
 * Forgets what no transaction under way can meet any more: where keys were touched long ago, and the marks of commits.
 *
 * Failure: a process that froze in the middle of a transaction may wake up any time later. What was forgotten stands as
 * touched at the newest of it, so its transaction runs again.
 */
const FORGOTTEN = 'forgotten';
/** Commits that are kept: a quarter of an hour of as many as a server takes. */
const KEPT_COMMITS = 100_000;
const AT_ONCE = 5_000;

/** @returns how many rows were removed; call again until it is 0 */
export async function forgetCommits(
  reader: Pick<Reader, 'execute'>,
  writes: Writes,
  kept = KEPT_COMMITS,
): Promise<number> {
  const bound = { sql: BOUND, args: [kept] };
  const upTo = Number((await reader.execute(bound)).rows[0]?.position ?? 0);
  if (upTo <= 0) return 0;
  return await writes.run(async (transaction) => {
    const { rows } = await transaction.execute({ sql: REMOVE_MARKS, args: [upTo, AT_ONCE] });
    const { rows: keys } = await transaction.execute({ sql: REMOVE_KEYS, args: [upTo, FORGOTTEN, AT_ONCE] });
    if (rows.length + keys.length > 0) await transaction.execute({ sql: REMEMBER, args: [FORGOTTEN, upTo] });
    return rows.length + keys.length;
  });
}

const BOUND = 'SELECT position - ? * 100000 AS position FROM counter';
const REMOVE_MARKS = `DELETE FROM commits WHERE mark IN (
  SELECT mark FROM commits INDEXED BY commits_by_position WHERE position <= ?1 LIMIT ?2) RETURNING 1`;
const REMOVE_KEYS = `DELETE FROM touched WHERE key IN (
  SELECT key FROM touched INDEXED BY touched_by_position WHERE position <= ?1 AND key <> ?2 LIMIT ?3) RETURNING 1`;
const REMEMBER = `INSERT INTO touched (key, position) VALUES (?1, ?2)
  ON CONFLICT (key) DO UPDATE SET position = max(position, excluded.position)`;
