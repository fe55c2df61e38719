import type { InboxItem, InboxKind } from './inbox';
import type { Position } from './position';

/** The webhook: who is not looking is told what came up in the inbox. Times are epoch milliseconds on the server's clock. */

/**
 * - `waiting`: it is to be sent, or sent again
 * - `delivered`: the receiver has said 2xx
 * - `withdrawn`: it needed nobody any more before it was delivered
 * - `gave-up`: it could not be delivered for a day
 */
export type WebhookDeliveryState = 'waiting' | 'delivered' | 'withdrawn' | 'gave-up';

/** What is sent. `text` is what Slack and those who take the same show. */
export interface WebhookBody {
  text: string;
  interlude: {
    type: 'inbox.opened' | 'test';
    item: Pick<InboxItem, 'id' | 'kind' | 'agentId' | 'sessionId' | 'title' | 'count' | 'since'> | null;
    /** Where a person can see to it; null if the server does not know its own address. */
    url: string | null;
  };
}

/** As in the header `webhook-id`: the same for each attempt. @param position where the item came up */
export function deliveryId(position: number): string {
  return `inbox_${position}`;
}

/** `GET /webhook` */
export interface WebhookStatus {
  /** Null: none is set. */
  webhook: { host: string; kinds: InboxKind[]; signed: boolean } | null;
  /** Why what is set is not used; null if it is, or nothing is. */
  problem: string | null;
  waiting: number;
  /** The last delivery that was attempted. */
  last: WebhookDelivery | null;
  position: Position;
}

export interface WebhookDelivery {
  /** As in the header `webhook-id`. */
  id: string;
  itemId: string;
  kind: InboxKind;
  state: WebhookDeliveryState;
  attempts: number;
  createdAt: number;
  dueAt: number;
  attemptedAt: number | null;
  /** The status of the last answer; null if there was none. */
  status: number | null;
  /** Why the last attempt failed; null if it did not. */
  error: string | null;
}

/** `GET /webhook/deliveries`: the newest first. */
export interface WebhookDeliveries {
  position: Position;
  deliveries: WebhookDelivery[];
  /** Where the next page begins, as `before` takes it; null at the end. */
  next: Position | null;
}

/** `POST /webhook/test`: 200, whatever came of it. */
export interface WebhookTest {
  delivered: boolean;
  status: number | null;
  error: string | null;
}
