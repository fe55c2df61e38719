import { AppError } from '@interlude/protocol/errors';
import type { InboxItem, WebhookBody, WebhookTest } from '@interlude/protocol/inbox';
import { inboxItemPath } from '@interlude/protocol/inbox-rules';
import { WEBHOOK_CALL_MS } from '@interlude/protocol/limits';
import { redactedFor, redactedJson } from '@interlude/protocol/redaction/redact-model';
import { truncateText } from '@interlude/protocol/text';
import type { InboxKind } from '@interlude/protocol/vocabulary';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { postRedacted } from '@/lib/server/post-redacted';
import type { WebhookSettings } from '@/lib/server/webhook/webhook-settings';

/** Calls the webhook once. Never rejects: the result has the outcome. */
export async function callWebhook(
  { url, authorization, key }: WebhookSettings,
  { id, at, body }: { id: string; at: number; body: WebhookBody },
): Promise<WebhookTest> {
  try {
    const text = await redactedJson('webhook', body);
    const response = await postRedacted(url, text, {
      headers: { ...(await webhookHeaders(key, { id, at, body: text })), ...(authorization && { authorization }) },
      // not followed, because the redirect's target was not configured
      redirect: 'manual',
      signal: AbortSignal.timeout(WEBHOOK_CALL_MS),
    });
    await response.body?.cancel();
    const { status } = response;
    if (status >= 200 && status < 300) return { delivered: true, status, error: null };
    const why = status >= 300 && status < 400 ? 'redirects are not followed' : `it responded with ${status}`;
    return { delivered: false, status, error: why };
  } catch (error) {
    const { name } = error as Error;
    // fetch errors may contain the URL, which some receivers treat as a secret
    const why = name === 'TimeoutError' ? `no response within ${WEBHOOK_CALL_MS / 1_000} s` : 'it can’t be reached';
    return { delivered: false, status: null, error: why };
  }
}

/**
 * Standard Webhooks headers, signed with HMAC-SHA256 over `id.timestamp.body`.
 *
 * @param at epoch milliseconds
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export async function webhookHeaders(
  key: Uint8Array<ArrayBuffer> | null,
  { id, at, body }: { id: string; at: number; body: string },
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(at / 1_000));
  const headers = { 'content-type': 'application/json', 'webhook-id': id, 'webhook-timestamp': timestamp };
  if (key === null) return headers;
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const imported = await crypto.subtle.importKey('raw', key, hmac, false, ['sign']);
  const signed = await crypto.subtle.sign('HMAC', imported, new TextEncoder().encode(`${id}.${timestamp}.${body}`));
  return { ...headers, 'webhook-signature': `v1,${btoa(String.fromCharCode(...new Uint8Array(signed)))}` };
}

const HEADLINES: Record<InboxKind, string> = {
  permission: 'asks for a permission',
  question: 'asks a question',
  'overdue-reply': 'has an overdue reply',
  failure: 'has failed',
  undelivered: 'has not received a task’s result',
  'lost-contact': 'has lost contact',
  'hook-failure': 'has failing hooks',
  'delivery-gap': 'has missing records',
  parked: 'has unassigned records',
};
const MAX_TITLE = 300;
const MAX_NAME = 100;

export function openedBody(item: InboxItem, publicUrl: string | null): WebhookBody {
  const { id, kind, agentId, sessionId, title, count, since } = item;
  const url = publicUrl === null ? null : `${publicUrl}${inboxItemPath(item)}`;
  const headline = `${slackText(agentId, MAX_NAME)} ${HEADLINES[kind]}`;
  // redact before truncating: half a secret would not be recognized
  const about = title === null ? '' : `: ${slackText(redactedFor('webhook', title), MAX_TITLE)}`;
  const text = `${headline}${about}${url === null ? '' : ` <${url}|Open>`}`;
  return {
    text,
    interlude: { type: 'inbox.opened', item: { id, kind, agentId, sessionId, title, count, since }, url },
  };
}

export function testBody(publicUrl: string | null): WebhookBody {
  const url = publicUrl === null ? null : `${publicUrl}/inbox`;
  const text = `This is a test of Interlude’s webhook.${url === null ? '' : ` <${url}|Open the inbox>`}`;
  return { text, interlude: { type: 'test', item: null, url } };
}

/** Converts text to one line, and escapes the characters that start Slack's links, mentions and commands. */
function slackText(text: string, most: number): string {
  const line = truncateText(text.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim(), most);
  return line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** `POST /webhook/test`: calls the webhook now and returns the result. @throws AppError `conflict`: `no_webhook` */
export async function postWebhookTest(
  { principal }: RequestContext<never>,
  server: ServerContext,
): Promise<WebhookTest> {
  const { webhook = null, now } = server;
  // the webhook covers the whole fleet, so a sender with a narrower scope sees none
  if (webhook === null || principal.scope.kind !== 'everything') {
    throw new AppError('conflict', 'No webhook is configured. Set INTERLUDE_WEBHOOK_URL and restart the server.', {
      details: { reason: 'no_webhook' },
    });
  }
  return callWebhook(webhook, { id: `test_${crypto.randomUUID()}`, at: now(), body: testBody(webhook.publicUrl) });
}
