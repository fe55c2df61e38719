import {
  deliveryId,
  type WebhookDeliveries,
  type WebhookDelivery,
  type WebhookStatus,
} from '@interlude/protocol/inbox';
import { positionFromNumber } from '@interlude/protocol/position';
import { webhookDeliveries } from '@/db/schema';
import { shapeWithout } from '@/db/table-rows';
import type { ReadScope, ServerContext } from '@/lib/server/access/request-context';
import { query, readSnapshot } from './read-snapshot';

const ROW = shapeWithout(webhookDeliveries, 'leaseUntil');
const COLUMNS = ROW.columns();

/** The configuration and its last delivery. Shows only the host, because the rest of the URL may be a secret. */
export async function readWebhook(
  view: ReadScope,
  { webhook = null, webhookProblem = null }: Pick<ServerContext, 'webhook' | 'webhookProblem'>,
): Promise<WebhookStatus> {
  const [where, isWhole] = [ofFleet(view), view.scope.kind === 'everything'];
  const { position, found } = await readSnapshot<[number, Row]>(view, [
    query(
      (row) => Number(row.count),
      `SELECT count(*) AS count FROM webhook_deliveries WHERE state = 'waiting' AND ${where}`,
    ),
    query(
      ROW.read,
      `SELECT ${COLUMNS} FROM webhook_deliveries WHERE attempted_at IS NOT NULL AND ${where} ORDER BY position DESC LIMIT 1`,
    ),
  ]);
  const [[waiting = 0], [last]] = found;
  return {
    webhook:
      webhook === null || !isWhole
        ? null
        : { host: new URL(webhook.url).host, kinds: [...webhook.kinds], signed: webhook.key !== null },
    problem: isWhole ? webhookProblem : null,
    waiting,
    last: last === undefined ? null : shown(last),
    position,
  };
}

/** One page of deliveries, newest first. */
export async function readWebhookDeliveries(
  view: ReadScope,
  { before, limit }: { before: number | null; limit: number },
): Promise<WebhookDeliveries> {
  const sql = `SELECT ${COLUMNS} FROM webhook_deliveries WHERE position < ? AND ${ofFleet(view)} ORDER BY position DESC LIMIT ?`;
  const { position, found } = await readSnapshot<[Row]>(view, [
    query(ROW.read, sql, before ?? Number.MAX_SAFE_INTEGER, limit + 1),
  ]);
  const [rows] = found;
  const last = rows[limit - 1];
  return {
    position,
    deliveries: rows.slice(0, limit).map(shown),
    next: rows.length > limit && last !== undefined ? positionFromNumber(last.position) : null,
  };
}

/** Deliveries concern the whole fleet, so readers with a narrower scope see none. */
function ofFleet({ scope }: ReadScope): string {
  return scope.kind === 'everything' ? 'TRUE' : 'FALSE';
}

type Row = ReturnType<typeof ROW.read>;

function shown({ position, ...delivery }: Row): WebhookDelivery {
  return { id: deliveryId(position), ...delivery };
}
