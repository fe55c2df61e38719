import type { RedactedFor } from '@interlude/protocol/redaction/redact-model';

/** Posts to another service. The server's only `fetch` with text from agents or people. */
export function postRedacted(
  url: string,
  body: RedactedFor<'webhook' | 'traces'>,
  init: { headers: Record<string, string>; signal: AbortSignal; redirect?: 'manual' },
): Promise<Response> {
  return fetch(url, { method: 'POST', body, ...init });
}
