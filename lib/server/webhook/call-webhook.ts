import type { WebhookBody, WebhookTest } from '@interlude/protocol/inbox';
import { WEBHOOK_CALL_MS } from '@interlude/protocol/limits';
import { redactedJson } from '@interlude/protocol/redaction/outlets';
import { postRedacted } from '@/lib/server/access/post-redacted';
import type { WebhookSettings } from '@/lib/server/access/webhook-settings';
import { webhookHeaders } from './sign-webhook';

/** Calls the webhook once. Never rejects: what came of it is the answer. */
export async function callWebhook(
  { url, authorization, key }: WebhookSettings,
  { id, at, body }: { id: string; at: number; body: WebhookBody },
): Promise<WebhookTest> {
  try {
    const text = await redactedJson('webhook', body);
    const response = await postRedacted(url, text, {
      headers: { ...(await webhookHeaders(key, { id, at, body: text })), ...(authorization && { authorization }) },
      // where it leads to was not set by anybody here
      redirect: 'manual',
      signal: AbortSignal.timeout(WEBHOOK_CALL_MS),
    });
    await response.body?.cancel();
    const { status } = response;
    if (status >= 200 && status < 300) return { delivered: true, status, error: null };
    const why = status >= 300 && status < 400 ? 'it redirects, which is not followed' : `it answered ${status}`;
    return { delivered: false, status, error: why };
  } catch (error) {
    const { name } = error as Error;
    // what fetch says of a failure may name the address, which is a secret of some receivers
    const why = name === 'TimeoutError' ? `no answer within ${WEBHOOK_CALL_MS / 1_000} s` : 'it can’t be reached';
    return { delivered: false, status: null, error: why };
  }
}
