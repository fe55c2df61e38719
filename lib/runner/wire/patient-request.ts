import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Readable } from 'node:stream';

export interface PatientRequest {
  method?: 'GET' | 'POST';
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal: AbortSignal;
}

/** What was certainly not received: no connection came about. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/**
 * An HTTP request that waits for as long as its signal lets it: an agent may think for an hour before it answers, and
 * `fetch` gives up after five minutes without a byte. Redirects are not followed: the headers are for this address.
 *
 * @returns once the answer has begun
 * @throws Error of the connection, with its `code`
 */
export function patientRequest(
  url: string,
  { method = 'GET', headers, body, signal }: PatientRequest,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const begin = url.startsWith('https:') ? requestHttps : requestHttp;
    // A connection of its own: one that was kept may be closed by the server just as it is used.
    const request = begin(url, { method, headers, signal, agent: false }, (answer) => resolve(responseOf(answer)));
    request.once('error', reject);
    request.end(body);
  });
}

export function isUnsent(error: unknown): boolean {
  const { code, errors } = error as { code?: string; errors?: { code?: string }[] };
  return UNSENT.has(code ?? '') || errors?.every((one) => UNSENT.has(one.code ?? '')) === true;
}

function responseOf(answer: IncomingMessage): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) if (value !== undefined) headers.set(name, String(value));
  const status = answer.statusCode ?? 502;
  const hasNoBody = status === 204 || status === 205 || status === 304;
  if (hasNoBody) answer.resume();
  const body = hasNoBody ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
  return new Response(body, { status: Math.min(Math.max(status, 200), 599), headers });
}
