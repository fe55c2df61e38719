import type { RedactedFor } from '@interlude/protocol/redaction/redact-model';

/** Posts redacted data to another service. No other `fetch` of the server sends text from agents or people. */
export function postRedacted(
  url: string,
  body: RedactedFor<'webhook' | 'traces'>,
  init: { headers: Record<string, string>; signal: AbortSignal; redirect?: 'manual' },
): Promise<Response> {
  return fetch(url, { method: 'POST', body, ...init });
}
