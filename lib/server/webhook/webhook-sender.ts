import { type InboxItem, isNews } from '@interlude/protocol/inbox';
import { WEBHOOK_FIRST_RETRY_MS, WEBHOOK_LEASE_MS, WEBHOOK_RETRY_MS } from '@interlude/protocol/limits';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { deliveryId } from '@interlude/protocol/webhook';
import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import { INBOX_ROW, inboxItemFromRow } from '@/db/read-model-rows';
import { webhookDeliveries } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { ServerContext } from '@/lib/server/access/server-context';
import type { WebhookSettings } from '@/lib/server/access/webhook-settings';
import { callWebhook } from './call-webhook';
import { NEWS, noteOpened } from './note-opened';
import { openedBody } from './webhook-body';

/** How often to look for what came up, and for what is to be sent again. */
const POLL_MS = 1_000;
/** For so long it waits between attempts, all in all. */
const GIVE_UP_MS = 24 * 60 * 60_000;
/** Sent side by side. */
const AT_ONCE = 5;
/** Most that one transaction looks through, for those. */
const MOST_LOOKED_AT = 50;

const DELIVERY = shapeOf(webhookDeliveries, 'position', 'attempts');

interface Claimed {
  position: number;
  attempts: number;
  leaseUntil: number;
  item: InboxItem;
}

/**
 * Tells the webhook what came up in the inbox, from the database: after a restart it goes on, and of several instances
 * one sends each.
 *
 * Ordering: none between deliveries; each has its own id, the same in every attempt. What comes up is noted whether or
 * not the receiver answers.
 * Failure: what was not answered with 2xx is sent again, later each time, for a day. That is counted by the attempts: no
 * clock that is moved makes it shorter or longer. A process that dies while it sends lets its lease run out, and the
 * receiver gets the same id once more.
 */
export class WebhookSender {
  readonly #settings: WebhookSettings | null;
  readonly #database: Database;
  readonly #now: () => number;
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #busy = new Set<'note' | 'send'>();
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
    this.#timer = setInterval(() => {
      // each for itself: a receiver that does not answer must not keep from noting what comes up
      void this.#look('note', NEWS, () => this.#note());
      void this.#look('send', { sql: DUE, args: [this.#now()] }, () => this.#sendDue());
    }, POLL_MS);
    if (typeof this.#timer === 'object') this.#timer.unref?.();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  /** Does all that is due, now. */
  async send(): Promise<void> {
    await this.#note();
    await this.#sendDue();
  }

  async #sendDue(): Promise<void> {
    const settings = this.#settings;
    if (settings === null) return;
    while (!this.#isClosed) {
      const { claimed, isMore } = await this.#database.writes.run((transaction) => this.#claim(transaction), {
        keys: ['webhook'],
      });
      await Promise.all(claimed.map((one) => this.#deliver(settings, one)));
      if (!isMore) return;
    }
  }

  async #look(what: 'note' | 'send', isDue: InStatement, work: () => Promise<void>): Promise<void> {
    if (this.#busy.has(what)) return;
    this.#busy.add(what);
    try {
      const { rows } = await this.#database.reader.execute(isDue);
      if (Number(rows[0]?.is_due) === 1) await work();
      this.#hasFailed = false;
    } catch (error) {
      // said once, until it succeeds
      if (!this.#hasFailed && !this.#isClosed) serverLog('error', 'The webhook waits for the database:', { error });
      this.#hasFailed = true;
    } finally {
      this.#busy.delete(what);
    }
  }

  /** Makes a delivery of each thing that has come up since the last look. */
  async #note(): Promise<void> {
    const kinds = this.#settings?.kinds;
    if (kinds === undefined) return;
    await this.#database.writes.run((transaction) => noteOpened(transaction, kinds, this.#now()), {
      keys: ['webhook'],
    });
  }

  /** Takes some that are due, so that nobody else sends them; what needs nobody any more is withdrawn. */
  async #claim(transaction: WriteTransaction): Promise<{ claimed: Claimed[]; isMore: boolean }> {
    const now = this.#now();
    const leaseUntil = now + WEBHOOK_LEASE_MS;
    const { rows } = await transaction.execute({
      sql: `SELECT ${DELIVERY.columns('d')}, ${INBOX_ROW.columns('i')}, i.opened_position AS opened
            FROM webhook_deliveries AS d LEFT JOIN inbox AS i ON i.id = d.item_id
            WHERE d.state = 'waiting' AND d.due_at <= ?1 AND ifnull(d.lease_until, 0) <= ?1
            ORDER BY d.due_at LIMIT ${MOST_LOOKED_AT}`,
      args: [now],
    });
    const claimed: Claimed[] = [];
    const withdrawn: number[] = [];
    for (const row of rows) {
      if (claimed.length === AT_ONCE) break;
      const { position, attempts } = DELIVERY.read(row);
      const item = row.opened === null ? null : inboxItemFromRow(row);
      // it came up again since: that is told by a delivery of its own
      const isIt = item !== null && Number(row.opened) === position && isNews(item, now) && item.claim === null;
      if (isIt) claimed.push({ position, attempts: attempts + 1, leaseUntil, item });
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
    return { claimed, isMore: rows.length > 0 };
  }

  async #deliver(settings: WebhookSettings, { position, attempts, leaseUntil, item }: Claimed): Promise<void> {
    const body = openedBody(item, settings.publicUrl);
    const { delivered, status, error } = await callWebhook(settings, {
      id: deliveryId(position),
      at: this.#now(),
      body,
    });
    const now = this.#now();
    const dueAt = now + retryMs(position, attempts);
    const state = delivered ? 'delivered' : hasTriedEnough(position, attempts) ? 'gave-up' : 'waiting';
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
  const ms = Math.min(WEBHOOK_RETRY_MS, WEBHOOK_FIRST_RETRY_MS * 4 ** (attempts - 1));
  return Math.round(ms * (1 + (position % 10) / 40));
}

/** Whether the waits behind so many attempts come to the time after which it gives up. */
function hasTriedEnough(position: number, attempts: number): boolean {
  let waitedMs = 0;
  for (let attempt = 1; attempt <= attempts; attempt++) waitedMs += retryMs(position, attempt);
  return waitedMs > GIVE_UP_MS;
}

/** Whether anything is to be sent. */
const DUE = `SELECT EXISTS (SELECT 1 FROM webhook_deliveries WHERE state = 'waiting' AND due_at <= ?1
    AND ifnull(lease_until, 0) <= ?1) AS is_due`;
