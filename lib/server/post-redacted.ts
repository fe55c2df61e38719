import type { RedactedFor } from '@interlude/protocol/redaction/outlets';

/** Posts to another service. The only `fetch` of the server folders that carries what agents and people wrote. */
export function postRedacted(
  url: string,
  body: RedactedFor<'webhook' | 'traces'>,
  init: { headers: Record<string, string>; signal: AbortSignal; redirect?: 'manual' },
): Promise<Response> {
  return fetch(url, { method: 'POST', body, ...init });
}
