import type { ErrorBody } from '@interlude/protocol/errors';
import { parseJson } from '@interlude/protocol/fields';
import { retryDelayMs } from '@interlude/protocol/retry-delay';
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

const USUAL = { firstMs: 1_000, longestMs: 10_000 };
/** A token is renewed by a person or a file: asking more often helps nobody. */
const UNAUTHORIZED = { firstMs: 30_000, longestMs: 30_000 };

/**
 * How long a runner waits after it has failed to reach the server.
 *
 * @param cause why the last attempt failed: `unauthorized`, or anything else
 * @param failures how many attempts have failed since the last success, from 1
 * @param random uniform in [0, 1)
 * @param longestMs of the waits that double
 * @returns milliseconds
 */
export function retryMs(cause: string, failures: number, random: number, longestMs = USUAL.longestMs): number {
  return retryDelayMs(failures, cause === 'unauthorized' ? UNAUTHORIZED : { ...USUAL, longestMs }, random);
}

/**
 * Runs `work` with a signal that fires after `ms`, or with `signal`, whichever comes first.
 *
 * Not `AbortSignal.any([signal, AbortSignal.timeout(ms)])`: in Node 20 nothing but that composite refers to the timeout,
 * and it does so weakly. The garbage collector takes the timeout away before it fires, and a request to a server that
 * accepts and never answers waits for ever. A timer is held by the event loop.
 *
 * @throws what `work` throws; after `ms` that is a `TimeoutError` where it passes the signal's reason on, as fetch does
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

/** Whether the server runs on this machine. */
export function isLoopback(url: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
}
