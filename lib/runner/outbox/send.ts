import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { IngestAnswer, ProducerRef } from '@/lib/protocol/envelope';
import type { ErrorBody } from '@/lib/protocol/errors';
import { API_BASE } from '@/lib/protocol/version';
import { withDeadline } from '@/lib/runner/with-deadline';
import type { QueuedRow } from './store';

/**
 * One request, and what its answer means for the queue.
 *
 * Failure: whatever is not Interlude's own verdict about these records (no connection, a timeout, an answer that was
 * cut off, a proxy's page, any 5xx) is `unavailable`: it says nothing about the records and never counts against them.
 */

/** Where to send; asked before each request, since a token may be renewed and a local server may move to another port. */
export type Endpoint = () => Promise<{ url: string; token: string | undefined }>;

export type SendOutcome =
  | { kind: 'acked'; ackedSeq: number; hadDuplicates: boolean; rejected: IngestAnswer['rejected'] }
  | { kind: 'gap'; expectedSeq: number }
  | { kind: 'fenced'; message: string }
  | { kind: 'unauthorized'; message: string }
  /** This request as it is will never be taken. */
  | { kind: 'refused'; message: string }
  | { kind: 'unavailable'; message: string; retryAfterMs: number | null };

export interface SendOptions {
  endpoint: Endpoint;
  producer: ProducerRef;
  rows: QueuedRow[];
  timeoutMs: number;
  signal: AbortSignal;
}

const COMPRESS_FROM_BYTES = 1_024;
const LONGEST_RETRY_AFTER_MS = 3_600_000;
const compress = promisify(gzip);

export async function send({ endpoint, producer, rows, timeoutMs, signal }: SendOptions): Promise<SendOutcome> {
  try {
    const { url, token } = await endpoint();
    const target = `${url.replace(/\/+$/, '')}${API_BASE}/events`;
    // The bodies are JSON already; only `seq` is spliced in.
    const records = rows.map((row) => `{"seq":${row.seq},${row.body.slice(1)}`);
    const text = `{"producer":${JSON.stringify(producer)},"records":[${records.join(',')}]}`;
    const zip = text.length > COMPRESS_FROM_BYTES;
    const body = zip ? new Uint8Array(await compress(text, { level: 1 })) : text;
    const headers = {
      'content-type': 'application/json',
      ...(zip ? { 'content-encoding': 'gzip' } : {}),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
    };
    return await withDeadline(timeoutMs, signal, async (deadline) => {
      const response = await fetch(target, { method: 'POST', headers, body, redirect: 'manual', signal: deadline });
      return meaning(response, await response.text(), target);
    });
  } catch (error) {
    return { kind: 'unavailable', message: connectionMessage(error), retryAfterMs: null };
  }
}

/**
 * Asks which `seq` the server expects next. The request names a number that must be beyond it, so that the answer is a
 * refusal and nothing is stored.
 *
 * @returns null when there is no such answer
 */
export async function askExpectedSeq(options: {
  endpoint: Endpoint;
  producer: ProducerRef;
  beyondSeq: number;
  timeoutMs: number;
}): Promise<number | null> {
  const rows = [{ seq: options.beyondSeq, kind: 'probe', body: '{"kind":"probe"}' }];
  const outcome = await send({ ...options, rows, signal: new AbortController().signal });
  return outcome.kind === 'gap' ? outcome.expectedSeq : null;
}

function meaning(response: Response, text: string, target: string): SendOutcome {
  const answer = parseJson(text);
  if (response.status === 200) {
    const { ackedSeq, duplicates, rejected = [] } = (answer ?? {}) as Partial<IngestAnswer>;
    if (Number.isSafeInteger(ackedSeq))
      return { kind: 'acked', ackedSeq: ackedSeq as number, hadDuplicates: duplicates !== 0, rejected };
    return {
      kind: 'unavailable',
      message: `${target} is not Interlude's: it answered 200 without ackedSeq`,
      retryAfterMs: null,
    };
  }
  const error = (answer as Partial<ErrorBody> | null)?.error;
  const message = error?.message ?? `${target} answered ${response.status}`;
  if (error?.code === 'sequence_gap' && Number.isSafeInteger(error.expectedSeq)) {
    return { kind: 'gap', expectedSeq: error.expectedSeq as number };
  }
  if (error?.code === 'stale_epoch') return { kind: 'fenced', message };
  if (response.status === 401 || response.status === 403) return { kind: 'unauthorized', message };
  // A proxy's 413 is about this request too; a 400 only when Interlude itself says so.
  if (response.status === 413 || (response.status === 400 && error?.code !== undefined)) {
    return { kind: 'refused', message };
  }
  return { kind: 'unavailable', message, retryAfterMs: retryAfterMs(response.headers.get('retry-after')) };
}

/** Seconds or a date, as HTTP has it. */
function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS) : null;
}

/** Why a request came to nothing, in a few words. */
export function connectionMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'the server did not answer in time';
  // fetch hides the reason ("fetch failed") in its cause
  const cause = error.cause as { code?: string; message?: string } | undefined;
  return cause?.code ?? cause?.message ?? error.message;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
