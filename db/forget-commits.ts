import type { Reader } from './reader';
import type { Writes } from './writes';

/**
 * Forgets what no transaction under way can meet any more: where keys were touched long ago, and the marks of commits.
 *
 * Failure: a process that froze in the middle of a transaction may wake up any time later. What was forgotten stands as
 * touched at the newest of it, so its transaction runs again.
 */
const FORGOTTEN = 'forgotten';
/** Commits that are kept, the newest of them: a quarter of an hour of as many as a server takes. */
const KEPT_COMMITS = 100_000;
const AT_ONCE = 5_000;

/** @returns whether there is more to forget */
export async function forgetCommits(
  reader: Pick<Reader, 'execute'>,
  writes: Writes,
  kept = KEPT_COMMITS,
): Promise<boolean> {
  const [bound] = (await reader.execute({ sql: BOUND, args: [kept] })).rows;
  if (bound === undefined) return false;
  const [last, upTo] = [Number(bound.last), Number(bound.position)];
  return await writes.run(async (transaction) => {
    const { rows } = await transaction.execute({ sql: REMOVE_MARKS, args: [last, AT_ONCE] });
    const { rows: keys } = await transaction.execute({ sql: REMOVE_KEYS, args: [upTo, FORGOTTEN, AT_ONCE] });
    if (rows.length + keys.length > 0) await transaction.execute({ sql: REMEMBER, args: [FORGOTTEN, upTo] });
    return Math.max(rows.length, keys.length) === AT_ONCE;
  });
}

/** The newest of those that go. Each commit has a higher row than those before it. */
const BOUND = `SELECT rowid AS last, position FROM commits
  WHERE rowid <= (SELECT max(rowid) FROM commits) - ? ORDER BY rowid DESC LIMIT 1`;
const REMOVE_MARKS = `DELETE FROM commits WHERE rowid IN (
  SELECT rowid FROM commits WHERE rowid <= ?1 ORDER BY rowid LIMIT ?2) RETURNING 1`;
const REMOVE_KEYS = `DELETE FROM touched WHERE key IN (
  SELECT key FROM touched INDEXED BY touched_by_position WHERE position <= ?1 AND key <> ?2 LIMIT ?3) RETURNING 1`;
const REMEMBER = `INSERT INTO touched (key, position) VALUES (?1, ?2)
  ON CONFLICT (key) DO UPDATE SET position = max(position, excluded.position)`;
