import { webhookDeliveries } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { Asked } from '@/lib/access/asked';
import type { ServerContext } from '@/lib/access/server-context';
import { AppError } from '@/lib/protocol/errors';
import { positionFromNumber } from '@/lib/protocol/position';
import type { WebhookDeliveries, WebhookDelivery, WebhookStatus, WebhookTest } from '@/lib/protocol/webhook';
import { callWebhook } from './call-webhook';
import { testBody } from './webhook-body';
import { deliveryId } from './webhook-sender';

const ROW = shapeOf(
  webhookDeliveries,
  'position',
  'itemId',
  'kind',
  'state',
  'attempts',
  'createdAt',
  'dueAt',
  'attemptedAt',
  'status',
  'error',
);
type Row = ReturnType<typeof ROW.read>;

/** `GET /webhook`: what is set, and how it fares. Of the address only the host: the rest of it may be a secret. */
export async function getWebhook(_: Asked<never>, server: ServerContext): Promise<WebhookStatus> {
  const { database, webhook = null, webhookProblem = null } = server;
  const [counter, waiting, last] = await database.reader.batch(
    [
      'SELECT position FROM counter',
      `SELECT count(*) AS count FROM webhook_deliveries WHERE state = 'waiting'`,
      `SELECT ${ROW.columns()} FROM webhook_deliveries WHERE attempted_at IS NOT NULL ORDER BY position DESC LIMIT 1`,
    ],
    'read',
  );
  return {
    webhook:
      webhook === null
        ? null
        : { host: new URL(webhook.url).host, kinds: [...webhook.kinds], signed: webhook.key !== null },
    problem: webhookProblem,
    waiting: Number(waiting?.rows[0]?.count ?? 0),
    last: last?.rows[0] === undefined ? null : shown(ROW.read(last.rows[0])),
    position: positionFromNumber(Number(counter?.rows[0]?.position ?? 0)),
  };
}

/** `GET /webhook/deliveries?before=&limit=` */
export async function getWebhookDeliveries(
  { query: { before, limit } }: Asked<never, { query: { before: number | null; limit: number } }>,
  { database }: ServerContext,
): Promise<WebhookDeliveries> {
  const [counter, found] = await database.reader.batch(
    [
      'SELECT position FROM counter',
      {
        sql: `SELECT ${ROW.columns()} FROM webhook_deliveries WHERE position < ? ORDER BY position DESC LIMIT ?`,
        args: [before ?? Number.MAX_SAFE_INTEGER, limit + 1],
      },
    ],
    'read',
  );
  const rows = (found?.rows ?? []).map((row) => ROW.read(row));
  const last = rows[limit - 1];
  return {
    position: positionFromNumber(Number(counter?.rows[0]?.position ?? 0)),
    deliveries: rows.slice(0, limit).map(shown),
    next: rows.length > limit && last !== undefined ? positionFromNumber(last.position) : null,
  };
}

/** `POST /webhook/test`: calls it now, and says what came of it. @throws AppError `conflict`: `no_webhook` */
export async function postWebhookTest(_: Asked<never>, server: ServerContext): Promise<WebhookTest> {
  const { webhook = null, now } = server;
  if (webhook === null) {
    throw new AppError('conflict', 'No webhook is set. Set INTERLUDE_WEBHOOK_URL, and start the server again.', {
      details: { reason: 'no_webhook' },
    });
  }
  return callWebhook(webhook, { id: `test_${crypto.randomUUID()}`, at: now(), body: testBody(webhook.publicUrl) });
}

function shown({ position, ...delivery }: Row): WebhookDelivery {
  return { id: deliveryId(position), ...delivery };
}
