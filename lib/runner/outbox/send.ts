import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { IngestAnswer, ProducerRef } from '@interlude/protocol/envelope';
import { parseJson } from '@interlude/protocol/fields';
import { connectionMessage, type Endpoint, errorIn, requestServer, withDeadline } from '../host/server-request';
import type { QueuedRow } from './store';

/**
 * One request, and what its answer means for the queue.
 *
 * Failure: whatever is not Interlude's own verdict about these records (no connection, a timeout, an answer that was
 * cut off, a proxy's page, any 5xx) is `unavailable`: it says nothing about the records and never counts against them.
 */

export type SendOutcome =
  | { kind: 'acked'; ackedSeq: number; hadDuplicates: boolean; rejected: IngestAnswer['rejected'] }
  | { kind: 'gap'; expectedSeq: number }
  | { kind: 'fenced'; message: string }
  /**
   * The outbox's epoch is ahead of the server's clock. `now`: the server's time in epoch milliseconds. `currentEpoch`: the
   * newest epoch that has written; 0 if none.
   */
  | { kind: 'ahead'; now: number; currentEpoch: number; message: string }
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
    // The bodies are JSON already; only `seq` is spliced in.
    const records = rows.map((row) => `{"seq":${row.seq},${row.body.slice(1)}`);
    const text = `{"producer":${JSON.stringify(producer)},"records":[${records.join(',')}]}`;
    const zip = text.length > COMPRESS_FROM_BYTES;
    const body = zip ? new Uint8Array(await compress(text, { level: 1 })) : text;
    const headers = {
      'content-type': 'application/json',
      ...(zip ? { 'content-encoding': 'gzip' } : {}),
    };
    return await withDeadline(timeoutMs, signal, async (deadline) => {
      const response = await requestServer(endpoint, '/events', { method: 'POST', headers, body, signal: deadline });
      return meaning(response, await response.text());
    });
  } catch (error) {
    return { kind: 'unavailable', message: connectionMessage(error), retryAfterMs: null };
  }
}

/** The server refuses it as a gap, says which `seq` it expects, and does not count it. */
export const PROBE: QueuedRow = { seq: Number.MAX_SAFE_INTEGER, kind: 'probe', body: '{"kind":"probe"}' };

/**
 * Asks which `seq` the server expects next. The request names a number that is always beyond it, so that the answer is a
 * refusal and nothing is stored.
 *
 * @returns null when there is no such answer
 */
export async function askExpectedSeq(options: {
  endpoint: Endpoint;
  producer: ProducerRef;
  timeoutMs: number;
}): Promise<number | null> {
  const outcome = await send({ ...options, rows: [PROBE], signal: new AbortController().signal });
  return outcome.kind === 'gap' ? outcome.expectedSeq : null;
}

function meaning(response: Response, text: string): SendOutcome {
  if (response.status === 200) {
    const { ackedSeq, duplicates, rejected = [] } = (parseJson(text) ?? {}) as Partial<IngestAnswer>;
    if (Number.isSafeInteger(ackedSeq))
      return { kind: 'acked', ackedSeq: ackedSeq as number, hadDuplicates: duplicates !== 0, rejected };
    return {
      kind: 'unavailable',
      message: `${response.url} is not Interlude's: it answered 200 without ackedSeq`,
      retryAfterMs: null,
    };
  }
  const error = errorIn(text);
  const message = error?.message ?? `${response.url} answered ${response.status}`;
  if (error?.code === 'sequence_gap' && Number.isSafeInteger(error.expectedSeq)) {
    return { kind: 'gap', expectedSeq: error.expectedSeq as number };
  }
  if (error?.code === 'stale_epoch') return { kind: 'fenced', message };
  if (error?.code === 'epoch_ahead' && Number.isSafeInteger(error.now)) {
    return { kind: 'ahead', now: error.now as number, currentEpoch: Number(error.currentEpoch ?? 0), message };
  }
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
