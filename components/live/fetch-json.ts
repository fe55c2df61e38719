import type { ErrorBody } from '@/lib/protocol/errors';
import { PAGE_HEADER } from '@/lib/protocol/page-header';
import { API_BASE } from '@/lib/protocol/version';

/** An answer that was not 2xx. `message` is the server's own sentence: it says what to do next. */
export class RequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'RequestError';
    this.status = status;
  }
}

/**
 * GET a read model.
 *
 * @param path below /api/v1, with a leading slash
 * @throws RequestError, or TypeError when the server can't be reached
 */
export async function fetchJson<Body>(path: string, signal?: AbortSignal): Promise<Body> {
  const response = await reach(path, {
    credentials: 'same-origin',
    cache: 'no-store',
    headers: { accept: 'application/json', [PAGE_HEADER]: '1' },
    signal,
  });
  return bodyOf(response);
}

/**
 * Asks something of the server.
 *
 * @param path below /api/v1, with a leading slash
 * @throws RequestError, or TypeError or a TimeoutError when no answer came, and then nobody knows whether it was heard
 */
export function postJson<Body>(path: string, body: object, signal?: AbortSignal): Promise<Body> {
  return sendJson('POST', path, body, signal);
}

/** As `postJson`, for what replaces what was there and may be sent again. */
export function putJson<Body>(path: string, body: object, signal?: AbortSignal): Promise<Body> {
  return sendJson('PUT', path, body, signal);
}

async function sendJson<Body>(method: string, path: string, body: object, signal?: AbortSignal): Promise<Body> {
  const response = await reach(path, {
    method,
    credentials: 'same-origin',
    cache: 'no-store',
    headers: { accept: 'application/json', 'content-type': 'application/json', [PAGE_HEADER]: '1' },
    body: JSON.stringify(body),
    signal,
  });
  return bodyOf(response);
}

/** A browser says of it what happened to the request, and nobody what to do. */
async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(`${API_BASE}${path}`, init);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new TypeError('The server can’t be reached. See that it runs and try again.', { cause: error });
  }
}

async function bodyOf<Body>(response: Response): Promise<Body> {
  if (response.ok) return (await response.json()) as Body;
  const body = (await response.json().catch(() => null)) as Partial<ErrorBody> | null;
  throw new RequestError(
    response.status,
    body?.error?.message ?? `The server answered ${response.status}. Reload to try again.`,
  );
}
