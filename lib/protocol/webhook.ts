import * as z from 'zod';
import { Position } from './field-schemas';
import { type InboxItem, InboxKind } from './inbox';

/** The webhook: reports what comes up in the inbox. Times are epoch milliseconds on the server's clock. */

/** The request body. `text` is what Slack and compatible receivers show. */
export interface WebhookBody {
  text: string;
  interlude: {
    type: 'inbox.opened' | 'test';
    item: Pick<InboxItem, 'id' | 'kind' | 'agentId' | 'sessionId' | 'title' | 'count' | 'since'> | null;
    /** Page where a person can handle it; null if the server does not know its own address. */
    url: string | null;
  };
}

/** The `webhook-id` header, the same for each attempt. @param position where the item came up */
export function deliveryId(position: number): string {
  return `inbox_${position}`;
}

export const WebhookDeliveryState = z
  .enum(['waiting', 'delivered', 'withdrawn', 'gave-up'])
  .describe(
    '`waiting`: to be sent, or sent again. `delivered`: the receiver answered 2xx. `withdrawn`: the item was done before it was delivered. `gave-up`: delivery failed for a day.',
  );
export type WebhookDeliveryState = z.infer<typeof WebhookDeliveryState>;

export const WebhookDelivery = z.object({
  id: z.string().describe('As in the `webhook-id` header.'),
  itemId: z.string(),
  kind: InboxKind,
  state: WebhookDeliveryState,
  attempts: z.number(),
  createdAt: z.number(),
  dueAt: z.number(),
  attemptedAt: z.number().nullable(),
  status: z.number().nullable().describe('Status of the last response; null if there was none.'),
  error: z.string().nullable().describe('Why the last attempt failed; null if it did not.'),
});
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

export const WebhookStatus = z.object({
  webhook: z
    .object({ host: z.string(), kinds: z.array(InboxKind), signed: z.boolean() })
    .nullable()
    .describe('Null: none is configured.'),
  problem: z.string().nullable().describe('Why the configured webhook is not used; null if it is, or if none is set.'),
  waiting: z.number(),
  last: WebhookDelivery.nullable().describe('The last attempted delivery.'),
  position: Position,
});
export type WebhookStatus = z.infer<typeof WebhookStatus>;

export const WebhookDeliveries = z.object({
  position: Position,
  deliveries: z.array(WebhookDelivery).describe('Newest first.'),
  next: Position.nullable().describe('Cursor for `before`; null at the end.'),
});
export type WebhookDeliveries = z.infer<typeof WebhookDeliveries>;

export const WebhookTest = z
  .object({ delivered: z.boolean(), status: z.number().nullable(), error: z.string().nullable() })
  .describe('Result of the call. The status of this answer is 200 even if the call failed.');
export type WebhookTest = z.infer<typeof WebhookTest>;
