import type { Database } from '@/db/client';
import { INBOX_ROW, inboxItemFromRow } from '@/db/fleet-rows';
import { webhookDeliveries } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/write-queue';
import type { ServerContext } from '@/lib/access/server-context';
import type { WebhookSettings } from '@/lib/access/webhook-settings';
import { type InboxItem, isNews } from '@/lib/protocol/inbox';
import { WEBHOOK_LEASE_MS, WEBHOOK_RETRY_MS } from '@/lib/protocol/limits';
import { deliveryId } from '@/lib/protocol/webhook';
import { callWebhook } from './call-webhook';
import { openedBody } from './webhook-body';

/** How often to look for what came up, and for what is to be sent again. */
const POLL_MS = 1_000;
/** What comes up is told once it has stood for so long: a failure may be mended at once, an answer given by somebody. */
const SETTLE_MS = 3_000;
/** What came up longer ago than this is no news: the webhook was off. */
const OLD_MS = 60 * 60_000;
const FIRST_RETRY_MS = 5_000;
const GIVE_UP_MS = 24 * 60 * 60_000;
/** Of one transaction, and sent side by side. */
const AT_ONCE = 5;
const MOST_NEW = 200;
/** The newest of the log. */
const MOST_KEPT = 1_000;

const DELIVERY = shapeOf(webhookDeliveries, 'position', 'attempts', 'createdAt');

interface Claimed {
  position: number;
  attempts: number;
  createdAt: number;
  leaseUntil: number;
  item: InboxItem;
}

/**
 * Tells the webhook what came up in the inbox, from the database: after a restart it goes on, and of several instances
 * one sends each.
 *
 * Ordering: none between deliveries; each has its own id, the same in every attempt.
 * Failure: what was not answered with 2xx is sent again, later each time, for a day. A process that dies while it sends
 * lets its lease run out, and the receiver gets the same id once more.
 */
export class WebhookSender {
  readonly #settings: WebhookSettings | null;
  readonly #database: Database;
  readonly #now: () => number;
  #timer: ReturnType<typeof setInterval> | undefined;
  #isLooking = false;
  #isClosed = false;
  #hasFailed = false;

  constructor({ database, now, webhook = null }: Pick<ServerContext, 'database' | 'now' | 'webhook'>) {
    this.#database = database;
    this.#now = now;
    this.#settings = webhook;
  }

  /** Begins, if a webhook is set. */
  keep(): void {
    if (this.#settings === null || this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setInterval(() => void this.#look(), POLL_MS);
    if (typeof this.#timer === 'object') this.#timer.unref?.();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  /** Does all that is due, now. */
  async send(): Promise<void> {
    const settings = this.#settings;
    if (settings === null) return;
    await this.#database.writes.run((transaction) => this.#note(transaction, settings));
    for (;;) {
      const claimed = await this.#database.writes.run((transaction) => this.#claim(transaction));
      if (claimed.length === 0 || this.#isClosed) return;
      await Promise.all(claimed.map((one) => this.#deliver(settings, one)));
    }
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const { rows } = await this.#database.reader.execute({
        sql: `SELECT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_by_opening WHERE done_at IS NULL
              AND opened_position > (SELECT ifnull(max(position), -1) FROM webhook_cursor))
            OR NOT EXISTS (SELECT 1 FROM webhook_cursor)
            OR EXISTS (SELECT 1 FROM webhook_deliveries WHERE state = 'waiting' AND due_at <= ?1
              AND ifnull(lease_until, 0) <= ?1) AS is_due`,
        args: [this.#now()],
      });
      if (Number(rows[0]?.is_due) === 1) await this.send();
      this.#hasFailed = false;
    } catch (error) {
      // said once, until it succeeds
      if (!this.#hasFailed) console.error('[interlude] The webhook waits for the database:', error);
      this.#hasFailed = true;
    } finally {
      this.#isLooking = false;
    }
  }

  /** Makes a delivery of each thing that has come up since the last look. At the first look there is nothing to tell. */
  async #note(transaction: WriteTransaction, { kinds }: WebhookSettings): Promise<void> {
    const now = this.#now();
    const { rows } = await transaction.execute(
      'SELECT (SELECT position FROM webhook_cursor) AS cursor, (SELECT position FROM counter) AS counter',
    );
    const counter = Number(rows[0]?.counter ?? 0);
    if (rows[0]?.cursor == null) {
      await transaction.execute({ sql: 'INSERT INTO webhook_cursor (id, position) VALUES (1, ?)', args: [counter] });
      return;
    }
    const { rows: opened } = await transaction.execute({
      sql: `SELECT opened_position, id, kind, since FROM inbox INDEXED BY inbox_by_opening
            WHERE done_at IS NULL AND opened_position > ? ORDER BY opened_position LIMIT ${MOST_NEW}`,
      args: [Number(rows[0].cursor)],
    });
    const told = opened.filter(({ kind, since }) => kinds.includes(kind as never) && Number(since) > now - OLD_MS);
    const upTo = opened.length < MOST_NEW ? counter : Number(opened.at(-1)?.opened_position);
    await transaction.batch([
      { sql: 'UPDATE webhook_cursor SET position = ?', args: [upTo] },
      {
        sql: `INSERT OR IGNORE INTO webhook_deliveries (position, item_id, kind, state, created_at, due_at)
              SELECT value->>0, value->>1, value->>2, 'waiting', ?2, ?3 FROM json_each(?1)`,
        args: [
          JSON.stringify(told.map(({ opened_position, id, kind }) => [opened_position, id, kind])),
          now,
          now + SETTLE_MS,
        ],
      },
      `DELETE FROM webhook_deliveries WHERE state <> 'waiting' AND position <=
         (SELECT position FROM webhook_deliveries ORDER BY position DESC LIMIT 1 OFFSET ${MOST_KEPT})`,
    ]);
  }

  /** Takes some that are due, so that nobody else sends them; what needs nobody any more is withdrawn. */
  async #claim(transaction: WriteTransaction): Promise<Claimed[]> {
    const now = this.#now();
    const leaseUntil = now + WEBHOOK_LEASE_MS;
    const { rows } = await transaction.execute({
      sql: `SELECT ${DELIVERY.columns('d')}, ${INBOX_ROW.columns('i')}, i.opened_position AS opened
            FROM webhook_deliveries AS d LEFT JOIN inbox AS i ON i.id = d.item_id
            WHERE d.state = 'waiting' AND d.due_at <= ?1 AND ifnull(d.lease_until, 0) <= ?1
            ORDER BY d.due_at LIMIT ${AT_ONCE}`,
      args: [now],
    });
    const claimed: Claimed[] = [];
    const withdrawn: number[] = [];
    for (const row of rows) {
      const { position, attempts, createdAt } = DELIVERY.read(row);
      const item = row.opened === null ? null : inboxItemFromRow(row);
      // it came up again since: that is told by a delivery of its own
      const isIt = item !== null && Number(row.opened) === position && isNews(item, now) && item.claim === null;
      if (isIt) claimed.push({ position, attempts: attempts + 1, createdAt, leaseUntil, item });
      else withdrawn.push(position);
    }
    await transaction.batch([
      {
        sql: `UPDATE webhook_deliveries SET state = 'withdrawn', lease_until = NULL
              WHERE position IN (SELECT value FROM json_each(?))`,
        args: [JSON.stringify(withdrawn)],
      },
      {
        sql: `UPDATE webhook_deliveries SET lease_until = ?, attempts = attempts + 1
              WHERE position IN (SELECT value FROM json_each(?))`,
        args: [leaseUntil, JSON.stringify(claimed.map(({ position }) => position))],
      },
    ]);
    return claimed.length === 0 && withdrawn.length > 0 ? this.#claim(transaction) : claimed;
  }

  async #deliver(
    settings: WebhookSettings,
    { position, attempts, createdAt, leaseUntil, item }: Claimed,
  ): Promise<void> {
    const body = openedBody(item, settings.publicUrl);
    const { delivered, status, error } = await callWebhook(settings, {
      id: deliveryId(position),
      at: this.#now(),
      body,
    });
    const now = this.#now();
    const dueAt = now + retryMs(position, attempts);
    const state = delivered ? 'delivered' : dueAt - createdAt > GIVE_UP_MS ? 'gave-up' : 'waiting';
    await this.#database.writes.run((transaction) =>
      transaction.execute({
        // somebody else has it by now, if the lease is another one
        sql: `UPDATE webhook_deliveries SET state = ?, due_at = ?, lease_until = NULL, attempted_at = ?, status = ?, error = ?
              WHERE position = ? AND lease_until = ?`,
        args: [state, dueAt, now, status, error, position, leaseUntil],
      }),
    );
  }
}

/** Later each time; and not all at once, when many wait for the same receiver. */
function retryMs(position: number, attempts: number): number {
  const ms = Math.min(WEBHOOK_RETRY_MS, FIRST_RETRY_MS * 4 ** (attempts - 1));
  return Math.round(ms * (1 + (position % 10) / 40));
}
