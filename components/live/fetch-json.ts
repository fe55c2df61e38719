import type { ErrorBody, ErrorCode } from '@interlude/protocol/errors';
import { leavePage } from '@/components/ui/browser-storage';
import { clocksFrozenAt } from '@/components/ui/clock';
import { apiFetch } from './api-fetch';

/** A response other than 2xx. `message` comes from the server and says what to do next. */
export class RequestError extends Error {
  readonly status: number;
  /** Null if the response is not Interlude's. */
  readonly code: ErrorCode | null;

  constructor(status: number, message: string, code: ErrorCode | null = null) {
    super(message);
    this.name = 'RequestError';
    this.status = status;
    this.code = code;
  }
}

/** Timeouts. Reads may return a lot of data, and requests send little. */
const READ_WITHIN_MS = 30_000;
const SENT_WITHIN_MS = 15_000;
/** Timeout while the live connection is stale. The request is still sent, because the server may be back. */
const STALE_WITHIN_MS = 5_000;

/**
 * Fetches a read model.
 *
 * @param path below /api/v1, with a leading slash
 * @throws RequestError, or TypeError if the server can't be reached
 */
export function fetchJson<Body>(path: string, signal?: AbortSignal): Promise<Body> {
  return request(path, { headers: { accept: 'application/json' } }, READ_WITHIN_MS, signal);
}

/**
 * Sends a request.
 *
 * @param path below /api/v1, with a leading slash
 * @throws RequestError, or TypeError if there was no response; the server may have acted nevertheless
 */
export function postJson<Body>(path: string, body: object): Promise<Body> {
  return sendJson('POST', path, body);
}

/** Like `postJson`, for requests that are safe to repeat. */
export function putJson<Body>(path: string, body: object): Promise<Body> {
  return sendJson('PUT', path, body);
}

export function deleteJson<Body>(path: string): Promise<Body> {
  return request(path, { method: 'DELETE', headers: { accept: 'application/json' } }, SENT_WITHIN_MS);
}

function sendJson<Body>(method: string, path: string, body: object): Promise<Body> {
  const headers = { accept: 'application/json', 'content-type': 'application/json' };
  return request(path, { method, headers, body: JSON.stringify(body) }, SENT_WITHIN_MS);
}

/** Browsers' error messages don't say what to do. */
async function request<Body>(
  path: string,
  init: { method?: string; headers: Record<string, string>; body?: string },
  withinMs: number,
  signal?: AbortSignal,
): Promise<Body> {
  const late = AbortSignal.timeout(clocksFrozenAt() === null ? withinMs : STALE_WITHIN_MS);
  try {
    const response = await apiFetch(path, {
      ...init,
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    return await bodyOf(response);
  } catch (error) {
    const isLate = late.aborted && signal?.aborted !== true && !(error instanceof RequestError);
    if (!isLate && !(error instanceof TypeError)) throw error;
    throw new TypeError('The server can’t be reached. Check that it is running and try again.', { cause: error });
  }
}

async function bodyOf<Body>(response: Response): Promise<Body> {
  if (response.ok) return (await response.json()) as Body;
  const body = (await response.json().catch(() => null)) as Partial<ErrorBody> | null;
  const { code = null, message } = body?.error ?? {};
  if (code === 'other_principal') leavePage();
  throw new RequestError(
    response.status,
    message ?? `The server returned ${response.status}. Reload to try again.`,
    code,
  );
}
