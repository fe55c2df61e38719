import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Readable } from 'node:stream';

export interface PatientRequest {
  method?: 'GET' | 'POST';
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal: AbortSignal;
}

const KEEP_ALIVE_MS = 60_000;

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
    // A machine that is gone closes nothing: without this, its answer would be waited for for ever.
    request.setSocketKeepAlive(true, KEEP_ALIVE_MS);
    request.end(body);
  });
}

/** How long what explains a refusal may take to come. */
const BEGINNING_MS = 5_000;

/** The beginning of an answer that explains itself: one that is endless, or never ends, keeps nobody waiting. */
export async function beginningOf(answer: Response, maxBytes: number): Promise<string> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return '';
  const decoder = new TextDecoder();
  const late = setTimeout(() => void reader.cancel().catch(() => undefined), BEGINNING_MS);
  let text = '';
  try {
    for (let bytes = 0; bytes < maxBytes; ) {
      const { value } = await reader.read();
      if (value === undefined) break;
      bytes += value.length;
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    // What has come has to do.
  } finally {
    clearTimeout(late);
    void reader.cancel().catch(() => undefined);
  }
  return text;
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
