/**
 * The headers of a webhook, signed with HMAC-SHA256 over `id.timestamp.body`.
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
