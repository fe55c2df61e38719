import type { Database } from '@/db/client';
import type { WriteTransaction } from '@/db/writes';
import { appendAuditEntry, REMOVAL_ACTION, removalEntry, removedUpTo } from '@/lib/server/access/audit';
import type { RunSlice } from './remove-history';

const ENTRIES_AT_ONCE = 500;
const READ_AT_ONCE = 2_000;
/** Minimum interval of removals, because each adds an entry. */
const MIN_INTERVAL_MS = 24 * 60 * 60_000;

/**
 * Removes the oldest audit entries. The number and hash of the last removed one are kept, so the rest of the chain
 * can still be verified.
 *
 * Ordering: an entry first records the number up to which entries will be removed; then they are removed, oldest first.
 * Failure: the next call continues a recorded removal that was not completed.
 *
 * @param before entries older than this are removed
 */
export async function removeAudit(database: Database, before: number, now: number, paced: RunSlice): Promise<void> {
  const { reader, writes } = database;
  const { rows } = await reader.execute('SELECT at FROM audit ORDER BY number LIMIT 1');
  const isDue = rows[0] !== undefined && Number(rows[0].at) < before - MIN_INTERVAL_MS;
  const upTo = isDue ? await lastBefore(database, before) : 0;
  if (upTo > 0) await paced(() => writes.run((transaction) => appendRemoval(transaction, upTo, now)));
  for (let isMore = (await readRemoval(reader)).isMore; isMore; ) {
    isMore = false;
    await paced(async () => {
      isMore = await writes.run((transaction) => removeEntries(transaction, now));
    });
  }
}

/** Selects the last entry to remove: the one before the first entry that is too young. */
async function lastBefore({ reader }: Pick<Database, 'reader'>, before: number): Promise<number> {
  for (let last = 0; ; ) {
    const { rows } = await reader.execute({
      sql: `SELECT number, at FROM audit WHERE number > ? ORDER BY number LIMIT ${READ_AT_ONCE}`,
      args: [last],
    });
    for (const { number, at } of rows) {
      if (Number(at) >= before) return last;
      last = Number(number);
    }
    if (rows.length === 0) return last;
  }
}

/** Reads the last number that the newest removal entry covers. `isMore`: true if it covers entries that still exist. */
async function readRemoval(reader: Pick<WriteTransaction, 'execute'>): Promise<{ upTo: number; isMore: boolean }> {
  const { rows } = await reader.execute({
    sql: `SELECT action, actor_kind, target, (SELECT min(number) FROM audit) AS first FROM audit
      WHERE action = ? ORDER BY number DESC LIMIT 1`,
    args: [REMOVAL_ACTION],
  });
  const [row] = rows;
  if (row === undefined) return { upTo: 0, isMore: false };
  const { action, actor_kind: actorKind, target } = row;
  const upTo = removedUpTo({ action: String(action), actorKind: String(actorKind), target: String(target) });
  return { upTo, isMore: Number(row.first) <= upTo };
}

async function appendRemoval(transaction: WriteTransaction, upTo: number, now: number): Promise<void> {
  transaction.touch('audit');
  if ((await readRemoval(transaction)).upTo >= upTo) return;
  const { rows } = await transaction.execute({ sql: 'SELECT hash FROM audit WHERE number = ?', args: [upTo] });
  if (rows[0] !== undefined) await appendAuditEntry(transaction, removalEntry(upTo, String(rows[0].hash), now));
}

/** @returns true if there are more entries to remove */
async function removeEntries(transaction: WriteTransaction, now: number): Promise<boolean> {
  transaction.touch('audit');
  const { upTo } = await readRemoval(transaction);
  const { rows } = await transaction.execute({
    sql: `SELECT number, hash FROM audit WHERE number <= ? ORDER BY number LIMIT ${ENTRIES_AT_ONCE}`,
    args: [upTo],
  });
  const last = rows.at(-1);
  if (last === undefined) return false;
  const [number, hash] = [Number(last.number), String(last.hash)];
  await transaction.batch([
    { sql: 'DELETE FROM audit WHERE number <= ?', args: [number] },
    {
      sql: `INSERT INTO audit_start (id, number, hash, removed_at) VALUES (1, ?, ?, ?) ON CONFLICT (id)
        DO UPDATE SET number = excluded.number, hash = excluded.hash, removed_at = excluded.removed_at`,
      args: [number, hash, now],
    },
  ]);
  return number < upTo;
}
