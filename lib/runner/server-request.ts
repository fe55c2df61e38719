import type { ErrorBody } from '@interlude/protocol/errors';
import { parseJson } from '@interlude/protocol/fields';
import { API_BASE } from '@interlude/protocol/version';

/**
 * One request to the server, as every part of a runner makes it.
 *
 * Failure: a redirect is not followed: the token is for the address it was given with.
 */

/** Where to send; asked before each request, since a token may be renewed and a local server may move to another port. */
export type Endpoint = () => Promise<{ url: string; token: string | undefined }>;

interface ServerRequest {
  method?: 'POST' | 'DELETE';
  headers?: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
  signal: AbortSignal;
}

/** @param path below `/api/v1` */
export async function requestServer(endpoint: Endpoint, path: string, request: ServerRequest): Promise<Response> {
  const { url, token } = await endpoint();
  const headers = { ...request.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
  return await fetch(url.replace(/\/+$/, '') + API_BASE + path, { ...request, headers, redirect: 'manual' });
}

/** The server's own verdict; null in an answer that is not Interlude's. */
export function errorIn(text: string): ErrorBody['error'] | null {
  return (parseJson(text) as Partial<ErrorBody> | null)?.error ?? null;
}

/** Why a request came to nothing, in a few words. */
export function connectionMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'the server did not answer in time';
  // fetch hides the reason ("fetch failed") in its cause
  const cause = error.cause as { code?: string; message?: string } | undefined;
  const { code } = error as { code?: unknown };
  const ownCode = typeof code === 'string' && /^E[A-Z]+$/.test(code) ? code : undefined;
  return cause?.code ?? cause?.message ?? ownCode ?? error.message;
}
