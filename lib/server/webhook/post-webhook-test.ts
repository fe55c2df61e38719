import { AppError } from '@interlude/protocol/errors';
import type { WebhookTest } from '@interlude/protocol/inbox';
import type { Asked } from '@/lib/server/access/asked';
import type { ServerContext } from '@/lib/server/access/server-context';
import { callWebhook } from './call-webhook';
import { testBody } from './webhook-body';

/** `POST /webhook/test`: calls it now, and says what came of it. @throws AppError `conflict`: `no_webhook` */
export async function postWebhookTest({ principal }: Asked<never>, server: ServerContext): Promise<WebhookTest> {
  const { webhook = null, now } = server;
  // it tells of the whole fleet: for whoever may see a part of that, there is none
  if (webhook === null || principal.scope.kind !== 'everything') {
    throw new AppError('conflict', 'No webhook is set. Set INTERLUDE_WEBHOOK_URL, and start the server again.', {
      details: { reason: 'no_webhook' },
    });
  }
  return callWebhook(webhook, { id: `test_${crypto.randomUUID()}`, at: now(), body: testBody(webhook.publicUrl) });
}
