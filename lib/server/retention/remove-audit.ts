import type { Database } from '@/db/client';
import type { WriteTransaction } from '@/db/writes';
import { addEntry, REMOVAL, removalEntry, removalIn } from '@/lib/server/access/audit-entry';
import type { RunSlice } from './remove-history';

const ENTRIES_AT_ONCE = 500;
const LOOKED_AT_ONCE = 2_000;
/** Each removal is an entry itself: so there is no more than one a day of them. */
const AT_LEAST_MS = 24 * 60 * 60_000;

/**
 * Removes the oldest entries of the audit. The chain can still be checked from there on: the number and the hash of the
 * last one that went are kept.
 *
 * Ordering: first an entry says up to which number, then they go, oldest first. So there is no removal without its entry.
 * Failure: what an entry has said and was not done is done at the next call.
 *
 * @param before entries of before then are too old
 */
export async function removeAudit(database: Database, before: number, now: number, paced: RunSlice): Promise<void> {
  const { reader, writes } = database;
  const { rows } = await reader.execute('SELECT at FROM audit ORDER BY number LIMIT 1');
  const isDue = rows[0] !== undefined && Number(rows[0].at) < before - AT_LEAST_MS;
  const upTo = isDue ? await lastBefore(database, before) : 0;
  if (upTo > 0) await paced(() => writes.run((transaction) => announce(transaction, upTo, now)));
  for (let isMore = (await announced(reader)).isMore; isMore; ) {
    isMore = false;
    await paced(async () => {
      isMore = await writes.run((transaction) => removeEntries(transaction, now));
    });
  }
}

/** The last of the oldest entries: one that is younger keeps all that came after it. */
async function lastBefore({ reader }: Pick<Database, 'reader'>, before: number): Promise<number> {
  for (let last = 0; ; ) {
    const { rows } = await reader.execute({
      sql: `SELECT number, at FROM audit WHERE number > ? ORDER BY number LIMIT ${LOOKED_AT_ONCE}`,
      args: [last],
    });
    for (const { number, at } of rows) {
      if (Number(at) >= before) return last;
      last = Number(number);
    }
    if (rows.length === 0) return last;
  }
}

/** Up to where the newest entry about it says that entries go, and whether some are still there. */
async function announced(asking: Pick<WriteTransaction, 'execute'>): Promise<{ upTo: number; isMore: boolean }> {
  const { rows } = await asking.execute({
    sql: `SELECT action, actor_kind, target, (SELECT min(number) FROM audit) AS first FROM audit
      WHERE action = ? ORDER BY number DESC LIMIT 1`,
    args: [REMOVAL],
  });
  const [row] = rows;
  if (row === undefined) return { upTo: 0, isMore: false };
  const { action, actor_kind: actorKind, target } = row;
  const upTo = removalIn({ action: String(action), actorKind: String(actorKind), target: String(target) });
  return { upTo, isMore: Number(row.first) <= upTo };
}

async function announce(transaction: WriteTransaction, upTo: number, now: number): Promise<void> {
  transaction.touch('audit');
  if ((await announced(transaction)).upTo >= upTo) return;
  const { rows } = await transaction.execute({ sql: 'SELECT hash FROM audit WHERE number = ?', args: [upTo] });
  if (rows[0] !== undefined) await addEntry(transaction, removalEntry(upTo, String(rows[0].hash), now));
}

/** @returns whether there are more */
async function removeEntries(transaction: WriteTransaction, now: number): Promise<boolean> {
  transaction.touch('audit');
  const { upTo } = await announced(transaction);
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
