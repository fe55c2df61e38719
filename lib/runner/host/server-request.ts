import { abortableFetch } from '@interlude/protocol/abortable-fetch';
import type { ErrorBody } from '@interlude/protocol/errors';
import { parseJson } from '@interlude/protocol/fields';
import { retryDelayMs } from '@interlude/protocol/sse';
import { API_BASE } from '@interlude/protocol/version';

/** Called before each request: a token may be renewed, and a local server may move to another port. */
export type Endpoint = () => Promise<{ url: string; token: string | undefined }>;

interface ServerRequest {
  method?: 'POST' | 'PUT' | 'DELETE';
  headers?: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
  signal: AbortSignal;
}

/**
 * Sends a request to the dashboard's server. Redirects are not followed, because the token is for the configured
 * address only.
 *
 * @param path below `/api/v1`
 */
export async function requestServer(endpoint: Endpoint, path: string, request: ServerRequest): Promise<Response> {
  const { url, token } = await endpoint();
  const headers = { ...request.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
  return await abortableFetch(url.replace(/\/+$/, '') + API_BASE + path, { ...request, headers, redirect: 'manual' });
}

/** @returns null if the answer is not from Interlude */
export function errorIn(text: string): ErrorBody['error'] | null {
  return (parseJson(text) as Partial<ErrorBody> | null)?.error ?? null;
}

/** The reason of a failed request, in a few words. */
export function connectionMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'the server did not answer in time';
  // The message of fetch is only "fetch failed".
  const cause = error.cause as { code?: string; message?: string } | undefined;
  const { code } = error as { code?: unknown };
  const ownCode = typeof code === 'string' && /^E[A-Z]+$/.test(code) ? code : undefined;
  return cause?.code ?? cause?.message ?? ownCode ?? error.message;
}

const DEFAULT = { firstMs: 1_000, longestMs: 10_000 };
/** Slow, because a refused token works only once a person or program has renewed it. */
const UNAUTHORIZED = { firstMs: 30_000, longestMs: 30_000 };

/**
 * Exponential backoff with jitter.
 *
 * @param cause `unauthorized`, or anything else
 * @param failures failed attempts since the last success, from 1
 * @param random uniform in [0, 1)
 * @returns milliseconds
 */
export function retryMs(cause: string, failures: number, random: number, longestMs = DEFAULT.longestMs): number {
  return retryDelayMs(failures, cause === 'unauthorized' ? UNAUTHORIZED : { ...DEFAULT, longestMs }, random);
}

/**
 * Runs `work` with a signal that aborts after `ms` or with `signal`.
 *
 * Not `AbortSignal.any([signal, AbortSignal.timeout(ms)])`: in Node 20 the composite holds the timeout weakly, so the
 * garbage collector may remove it before it fires, and the request would never settle.
 *
 * @throws what `work` throws; after `ms` usually the signal's `TimeoutError`
 */
export async function withDeadline<Result>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const stop = () => controller.abort(signal.reason);
  const timer = setTimeout(() => controller.abort(new DOMException('no answer in time', 'TimeoutError')), ms);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

export function isLoopback(url: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
}
