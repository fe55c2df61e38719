import type { InboxKind } from '@interlude/protocol/inbox-kinds';
import { WEBHOOK_SETTLE_MS } from '@interlude/protocol/limits';
import type { WriteTransaction } from '@/db/writes';

/** What came up longer ago than this, when the webhook is first looked after, is no news. */
const OLD_MS = 60 * 60_000;
/** Of one transaction. */
const MOST_NEW = 200;
/** The newest of the log. */
const MOST_KEPT = 1_000;

/** Whether anything has come up. */
export const NEWS = `SELECT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_by_opening WHERE done_at IS NULL
    AND opened_position > (SELECT ifnull(max(position), -1) FROM webhook_cursor))
  OR NOT EXISTS (SELECT 1 FROM webhook_cursor) AS is_due`;

/**
 * Makes a delivery of each thing that has come up since the last look, however long ago that was: what is not sent in the
 * end has a row that says so.
 */
export async function noteOpened(
  transaction: WriteTransaction,
  kinds: readonly InboxKind[],
  now: number,
): Promise<void> {
  const { position, counter } = await readCursor(transaction, now);
  const { rows: opened } = await transaction.execute({
    sql: `SELECT opened_position, id, kind FROM inbox INDEXED BY inbox_by_opening
          WHERE done_at IS NULL AND opened_position > ? ORDER BY opened_position LIMIT ${MOST_NEW}`,
    args: [position],
  });
  const told = opened.filter(({ kind }) => kinds.includes(kind as InboxKind));
  const upTo = opened.length < MOST_NEW ? counter : Number(opened.at(-1)?.opened_position);
  await transaction.batch([
    {
      sql: `INSERT INTO webhook_cursor (id, position) VALUES (1, ?)
            ON CONFLICT (id) DO UPDATE SET position = excluded.position`,
      args: [upTo],
    },
    {
      sql: `INSERT OR IGNORE INTO webhook_deliveries (position, item_id, kind, state, created_at, due_at)
            SELECT value->>0, value->>1, value->>2, 'waiting', ?2, ?3 FROM json_each(?1)`,
      args: [
        JSON.stringify(told.map(({ opened_position, id, kind }) => [opened_position, id, kind])),
        now,
        now + WEBHOOK_SETTLE_MS,
      ],
    },
    `DELETE FROM webhook_deliveries WHERE state <> 'waiting' AND position <=
       (SELECT position FROM webhook_deliveries ORDER BY position DESC LIMIT 1 OFFSET ${MOST_KEPT})`,
  ]);
}

/** Up to where what came up was looked at; at the first look, up to what came up too long ago. */
async function readCursor(transaction: WriteTransaction, now: number): Promise<{ position: number; counter: number }> {
  const { rows } = await transaction.execute({
    sql: `SELECT position AS counter, ifnull((SELECT position FROM webhook_cursor),
            (SELECT opened_position FROM inbox INDEXED BY inbox_by_opening WHERE done_at IS NULL AND since <= ?
              ORDER BY opened_position DESC LIMIT 1)) AS position FROM counter`,
    args: [now - OLD_MS],
  });
  return { position: Number(rows[0]?.position ?? 0), counter: Number(rows[0]?.counter ?? 0) };
}
