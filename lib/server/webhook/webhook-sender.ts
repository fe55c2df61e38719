import { deliveryId, type InboxItem } from '@interlude/protocol/inbox';
import { needsPerson } from '@interlude/protocol/inbox-rules';
import {
  WEBHOOK_FIRST_RETRY_MS,
  WEBHOOK_LEASE_MS,
  WEBHOOK_RETRY_MS,
  WEBHOOK_SETTLE_MS,
} from '@interlude/protocol/limits';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { InboxKind } from '@interlude/protocol/vocabulary';
import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import { inboxColumns, inboxItemFromRow } from '@/db/read-model-rows';
import { webhookDeliveries } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { unref } from '@/db/yield-to-loop';
import type { ServerContext } from '@/lib/server/access/request-context';
import type { WebhookSettings } from '@/lib/server/webhook/webhook-settings';
import { callWebhook, openedBody } from './call-webhook';

const POLL_MS = 1_000;
/** Total of the delays after which a delivery is abandoned. */
const GIVE_UP_MS = 24 * 60 * 60_000;
/** Maximum concurrent calls. */
const CONCURRENCY = 5;
/** Due deliveries to examine per transaction. */
const MAX_EXAMINED = 50;

const DELIVERY = shapeOf(webhookDeliveries, 'position', 'attempts');

interface Claimed {
  position: number;
  attempts: number;
  leaseUntil: number;
  item: InboxItem;
}

/**
 * Delivers new inbox items to the webhook from the database, so it resumes after a restart. Of several instances, one
 * sends each item.
 *
 * Ordering: none between deliveries; each keeps its id across attempts. Items are enqueued even if the receiver
 * doesn't answer.
 * Failure: a delivery without a 2xx response is retried with growing delays for a day, measured by attempts, so
 * clock steps don't matter. If a process dies while sending, its lease expires and the receiver gets the same id again.
 */
export class WebhookSender {
  readonly #settings: WebhookSettings | null;
  readonly #database: Database;
  readonly #now: () => number;
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #busy = new Set<'enqueue' | 'send'>();
  #isClosed = false;
  #hasFailed = false;

  constructor({ database, now, webhook = null }: Pick<ServerContext, 'database' | 'now' | 'webhook'>) {
    this.#database = database;
    this.#now = now;
    this.#settings = webhook;
  }

  /** Starts polling if a webhook is configured. */
  start(): void {
    if (this.#settings === null || this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setInterval(() => {
      // runs separately: a silent receiver must not delay enqueuing
      void this.#poll('enqueue', HAS_OPENED, () => this.#enqueue());
      void this.#poll('send', { sql: DUE, args: [this.#now()] }, () => this.#sendDue());
    }, POLL_MS);
    unref(this.#timer);
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  /** Enqueues and sends everything due. */
  async send(): Promise<void> {
    await this.#enqueue();
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

  async #poll(job: 'enqueue' | 'send', isDue: InStatement, work: () => Promise<void>): Promise<void> {
    if (this.#busy.has(job)) return;
    this.#busy.add(job);
    try {
      const { rows } = await this.#database.reader.execute(isDue);
      if (Number(rows[0]?.is_due) === 1) await work();
      this.#hasFailed = false;
    } catch (error) {
      // logged once, until a run succeeds
      if (!this.#hasFailed && !this.#isClosed)
        serverLog('error', 'Webhook deliveries are paused until the database responds:', { error });
      this.#hasFailed = true;
    } finally {
      this.#busy.delete(job);
    }
  }

  async #enqueue(): Promise<void> {
    const kinds = this.#settings?.kinds;
    if (kinds === undefined) return;
    await this.#database.writes.run((transaction) => enqueueOpened(transaction, kinds, this.#now()), {
      keys: ['webhook'],
    });
  }

  /** Leases due deliveries, and withdraws those whose items no longer need a person. */
  async #claim(transaction: WriteTransaction): Promise<{ claimed: Claimed[]; isMore: boolean }> {
    const now = this.#now();
    const leaseUntil = now + WEBHOOK_LEASE_MS;
    const { rows } = await transaction.execute({
      sql: `SELECT ${DELIVERY.columns('d')}, ${inboxColumns('i')}, i.opened_position AS opened
            FROM webhook_deliveries AS d LEFT JOIN inbox AS i ON i.id = d.item_id
            WHERE d.state = 'waiting' AND d.due_at <= ?1 AND ifnull(d.lease_until, 0) <= ?1
            ORDER BY d.due_at LIMIT ${MAX_EXAMINED}`,
      args: [now],
    });
    const claimed: Claimed[] = [];
    const withdrawn: number[] = [];
    for (const row of rows) {
      if (claimed.length === CONCURRENCY) break;
      const { position, attempts } = DELIVERY.read(row);
      const item = row.opened === null ? null : inboxItemFromRow(row);
      // a newer opening has its own delivery
      const isCurrent = item !== null && Number(row.opened) === position && needsPerson(item, now, null);
      if (isCurrent) claimed.push({ position, attempts: attempts + 1, leaseUntil, item });
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
    const state = delivered ? 'delivered' : isExhausted(position, attempts) ? 'gave-up' : 'waiting';
    await this.#database.writes.run((transaction) =>
      transaction.execute({
        // a different lease means that another instance has taken over
        sql: `UPDATE webhook_deliveries SET state = ?, due_at = ?, lease_until = NULL, attempted_at = ?, status = ?, error = ?
              WHERE position = ? AND lease_until = ?`,
        args: [state, dueAt, now, status, error, position, leaseUntil],
      }),
    );
  }
}

/** Grows with each attempt. Jitter protects receivers with many waiting deliveries. */
function retryMs(position: number, attempts: number): number {
  const ms = Math.min(WEBHOOK_RETRY_MS, WEBHOOK_FIRST_RETRY_MS * 4 ** (attempts - 1));
  return Math.round(ms * (1 + (position % 10) / 40));
}

/** True if the delays of these attempts exceed GIVE_UP_MS. */
function isExhausted(position: number, attempts: number): boolean {
  let waitedMs = 0;
  for (let attempt = 1; attempt <= attempts; attempt++) waitedMs += retryMs(position, attempt);
  return waitedMs > GIVE_UP_MS;
}

const DUE = `SELECT EXISTS (SELECT 1 FROM webhook_deliveries WHERE state = 'waiting' AND due_at <= ?1
    AND ifnull(lease_until, 0) <= ?1) AS is_due`;

/** When the webhook is first used, items older than this are skipped. */
const MAX_AGE_MS = 60 * 60_000;
/** Items to enqueue per transaction. */
const MAX_ENQUEUED = 200;
/** Finished deliveries to keep. */
const MAX_FINISHED = 1_000;

const HAS_OPENED = `SELECT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_by_opening WHERE done_at IS NULL
    AND opened_position > (SELECT ifnull(max(position), -1) FROM webhook_cursor))
  OR NOT EXISTS (SELECT 1 FROM webhook_cursor) AS is_due`;

/**
 * Enqueues a delivery for each item opened since the cursor, regardless of age, so that unsent ones have a row as well.
 */
async function enqueueOpened(transaction: WriteTransaction, kinds: readonly InboxKind[], now: number): Promise<void> {
  const { position, counter } = await readCursor(transaction, now);
  const { rows: opened } = await transaction.execute({
    sql: `SELECT opened_position, id, kind FROM inbox INDEXED BY inbox_by_opening
          WHERE done_at IS NULL AND opened_position > ? ORDER BY opened_position LIMIT ${MAX_ENQUEUED}`,
    args: [position],
  });
  const wanted = opened.filter(({ kind }) => kinds.includes(kind as InboxKind));
  const upTo = opened.length < MAX_ENQUEUED ? counter : Number(opened.at(-1)?.opened_position);
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
        JSON.stringify(wanted.map(({ opened_position, id, kind }) => [opened_position, id, kind])),
        now,
        now + WEBHOOK_SETTLE_MS,
      ],
    },
    `DELETE FROM webhook_deliveries WHERE state <> 'waiting' AND position <=
       (SELECT position FROM webhook_deliveries ORDER BY position DESC LIMIT 1 OFFSET ${MAX_FINISHED})`,
  ]);
}

/**
 * The position up to which items were enqueued; on first use, the position of the newest item older than MAX_AGE_MS.
 */
async function readCursor(transaction: WriteTransaction, now: number): Promise<{ position: number; counter: number }> {
  const { rows } = await transaction.execute({
    sql: `SELECT position AS counter, ifnull((SELECT position FROM webhook_cursor),
            (SELECT opened_position FROM inbox INDEXED BY inbox_by_opening WHERE done_at IS NULL AND since <= ?
              ORDER BY opened_position DESC LIMIT 1)) AS position FROM counter`,
    args: [now - MAX_AGE_MS],
  });
  return { position: Number(rows[0]?.position ?? 0), counter: Number(rows[0]?.counter ?? 0) };
}
