import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { IngestResponse, ProducerRef } from '@interlude/protocol/envelope';
import { parseJson } from '@interlude/protocol/fields';
import { connectionMessage, type Endpoint, errorIn, requestServer, withDeadline } from '../host/server-request';
import { isOutboxLine } from './append-plan';
import type { OutboxStore, QueuedRow } from './store';

export type Delivery =
  /** The queue changed, possibly through a refusal; its new head can be sent. */
  | { kind: 'progressed' }
  | { kind: 'emptied' }
  | { kind: 'failed'; cause: FailureCause; message: string; retryAfterMs: number | null }
  | { kind: 'fenced'; message: string };

type FailureCause = 'unavailable' | 'unauthorized' | 'refused' | 'storage';

/** Events worth a log line. */
export type OutboxNotice =
  | { level: 'fatal'; kind: 'poisoned'; seq: number; sessionId: string | undefined; message: string }
  | { level: 'error'; kind: 'corrupt'; file: string; count: number; message: string }
  | { level: 'error'; kind: 'lost-by-server'; count: number; message: string }
  | { level: 'error'; kind: 'rewound'; message: string }
  | { level: 'error'; kind: 'dropped'; count: number; message: string }
  | { level: 'warn'; kind: 'clock-ahead'; message: string }
  | { level: 'warn'; kind: 'passed-over'; message: string }
  | { level: 'warn'; kind: 'quarantined'; rejected: Rejected[]; message: string };

/** A quarantined record and its session. */
type Rejected = IngestResponse['rejected'][number] & { sessionId?: string | undefined };

export interface DelivererOptions {
  store: OutboxStore;
  endpoint: Endpoint;
  clock: OutboxClock;
  maxBatchRows: number;
  maxBatchBytes: number;
  requestTimeoutMs: number;
  onNotice: (notice: OutboxNotice) => void;
}

type Answer<Kind extends SendOutcome['kind']> = Extract<SendOutcome, { kind: Kind }>;

/**
 * Sends the head of the queue and applies the server's response to the file.
 *
 * Ordering: only the head is sent. A record that the server refuses is replaced by a `lost` record with the same `seq`
 * before anything behind it is sent.
 * Failure: a response changes the file in one transaction or not at all. Unacknowledged records are sent again with the
 * same `seq`; the server drops duplicates.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #store: OutboxStore;
  /** Halved while requests are refused, to isolate the offending record. */
  #batchRows: number;
  /** Last `seq` of each refused request during that search. */
  #refusedUpTo: number[] = [];
  /** True once the server was asked whether it is ahead of the file. */
  #isChecked = false;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#batchRows = options.maxBatchRows;
  }

  async deliver(signal: AbortSignal): Promise<Delivery> {
    try {
      return await this.#sendHead(signal);
    } finally {
      await this.#store.completed(this.#options.clock.now());
    }
  }

  /**
   * Probes the server before the first send of an existing file. If the file is an old copy, its new records would pass
   * for duplicates.
   * @returns null to continue
   */
  async #checked(signal: AbortSignal): Promise<Delivery | null> {
    const { endpoint, requestTimeoutMs: timeoutMs } = this.#options;
    const { producer, openedSeq } = this.#store;
    if (this.#isChecked || openedSeq === 0) return null;
    const outcome = await send({ endpoint, producer, rows: [PROBE], timeoutMs, signal });
    switch (outcome.kind) {
      case 'unauthorized':
        return { kind: 'failed', cause: 'unauthorized', message: outcome.message, retryAfterMs: null };
      case 'unavailable':
        return { kind: 'failed', cause: 'unavailable', message: outcome.message, retryAfterMs: outcome.retryAfterMs };
      case 'fenced':
        return { kind: 'fenced', message: outcome.message };
      default:
        this.#isChecked = true;
        if (outcome.kind !== 'gap' || outcome.expectedSeq <= openedSeq + 1) return null;
        return this.#rewound(outcome.expectedSeq - 1);
    }
  }

  async #sendHead(signal: AbortSignal): Promise<Delivery> {
    const { endpoint, maxBatchBytes, requestTimeoutMs } = this.#options;
    const rows = await this.#store.head(this.#batchRows, maxBatchBytes);
    const [first, last] = [rows[0], rows.at(-1)];
    if (!first || !last) return { kind: 'emptied' };
    const unchecked = await this.#checked(signal);
    if (unchecked !== null) return unchecked;
    const producer = this.#store.producer;
    const outcome = await send({ endpoint, producer, rows, timeoutMs: requestTimeoutMs, signal });
    switch (outcome.kind) {
      case 'acked':
        return this.#acked(outcome, rows, first, last);
      case 'gap':
        return this.#gap(outcome, first);
      case 'refused':
        return this.#refused(outcome, rows, first);
      case 'ahead':
        return this.#ahead(outcome, first);
      case 'fenced':
        return { kind: 'fenced', message: outcome.message };
      case 'unauthorized':
        return { kind: 'failed', cause: 'unauthorized', message: outcome.message, retryAfterMs: null };
      case 'unavailable':
        return { kind: 'failed', cause: 'unavailable', message: outcome.message, retryAfterMs: outcome.retryAfterMs };
    }
  }

  async #acked(
    { ackedSeq, hadDuplicates, rejected }: Answer<'acked'>,
    rows: readonly QueuedRow[],
    first: QueuedRow,
    last: QueuedRow,
  ): Promise<Delivery> {
    if (ackedSeq < first.seq) {
      const message = `the server acknowledged ${ackedSeq} when ${first.seq} was sent`;
      return { kind: 'failed', cause: 'unavailable', message, retryAfterMs: null };
    }
    if (ackedSeq > this.#store.lastSeq) return this.#rewound(ackedSeq);
    await this.#store.acknowledge(Math.min(ackedSeq, last.seq), hadDuplicates);
    this.#batchRows = Math.min(this.#batchRows * 2, this.#options.maxBatchRows);
    const bodies = new Map(rows.map(({ seq, body }) => [seq, body]));
    const quarantined = rejected.flatMap((one) => {
      const origin = originOf(bodies.get(one.seq));
      return isOutboxLine(origin) ? [] : [{ ...one, sessionId: origin.sessionId }];
    });
    const [one] = quarantined;
    if (one !== undefined) {
      const message = `the server quarantined ${quarantined.length} record(s), first: seq ${one.seq}, ${one.message}`;
      this.#options.onNotice({ level: 'warn', kind: 'quarantined', rejected: quarantined, message });
    }
    return { kind: 'progressed' };
  }

  async #gap({ expectedSeq }: Answer<'gap'>, first: QueuedRow): Promise<Delivery> {
    if (expectedSeq > this.#store.lastSeq + 1) return this.#rewound(expectedSeq - 1);
    if (expectedSeq > first.seq) {
      await this.#store.acknowledge(expectedSeq - 1, true);
      return { kind: 'progressed' };
    }
    if (expectedSeq === first.seq) {
      const message = `the server expects record ${expectedSeq} but refuses that record as a gap`;
      return { kind: 'failed', cause: 'unavailable', message, retryAfterMs: null };
    }
    await this.#lostByServer(this.#nextEpoch(), first, first.seq - expectedSeq);
    return { kind: 'progressed' };
  }

  /**
   * Handles a server that no longer has `count` records it acknowledged: its database was lost, or another server
   * responds.
   */
  async #lostByServer(epoch: number, first: QueuedRow, count: number): Promise<void> {
    const { agentId, sessionId } = JSON.parse(first.body) as { agentId: string; sessionId?: string };
    const occurredAt = this.#options.clock.now();
    await this.#store.renumber(epoch, { agentId, sessionId, occurredAt, count, reason: 'lost-by-server' });
    const message = `the server no longer has ${count} record(s) that it had acknowledged; they are declared lost`;
    this.#options.onNotice({ level: 'error', kind: 'lost-by-server', count, message });
  }

  /**
   * Restarts the epoch at the server's time, because the epoch comes from a clock that is ahead. Waits if an earlier
   * outbox of this producer wrote with an epoch just as far ahead.
   */
  async #ahead({ now, currentEpoch, message }: Answer<'ahead'>, first: QueuedRow): Promise<Delivery> {
    const { epoch } = this.#store.producer;
    const next = Math.max(now, currentEpoch + 1);
    if (next >= epoch) return { kind: 'failed', cause: 'unavailable', message, retryAfterMs: null };
    this.#refusedUpTo = [];
    if (first.seq > 1) await this.#lostByServer(next, first, first.seq - 1);
    else await this.#store.renumber(next, null);
    const minutes = Math.ceil((epoch - now) / 60_000);
    const notice = `the outbox was created ${minutes} min ahead of the server's clock; restarted it at the server's time`;
    this.#options.onNotice({ level: 'warn', kind: 'clock-ahead', message: notice });
    return { kind: 'progressed' };
  }

  /**
   * Handles a server that has sequence numbers which this file never assigned: the file is an old copy. Renumbers the
   * queue: duplicates are better than losses.
   */
  async #rewound(serverSeq: number): Promise<Delivery> {
    await this.#store.renumber(this.#nextEpoch(), null);
    const message = `the outbox file is an old copy (the server is at seq ${serverSeq}); unsent records are sent again as new ones`;
    this.#options.onNotice({ level: 'error', kind: 'rewound', message });
    return { kind: 'progressed' };
  }

  async #refused({ message }: Answer<'refused'>, rows: QueuedRow[], first: QueuedRow): Promise<Delivery> {
    const upTo = rows.at(-1)?.seq ?? first.seq;
    this.#refusedUpTo = [...this.#refusedUpTo.filter((earlier) => earlier >= first.seq), upTo];
    if (rows.length > 1) {
      this.#batchRows = Math.ceil(rows.length / 2);
      return { kind: 'progressed' };
    }
    // A server that refuses even a `lost` record refuses everything, so the records are not to blame.
    if (first.kind === 'lost') return { kind: 'failed', cause: 'refused', message, retryAfterMs: null };
    const attempts = this.#refusedUpTo.length;
    await this.#store.poison(first, message, this.#options.clock.now());
    this.#reportPoisoned(first, attempts, message);
    return { kind: 'progressed' };
  }

  #reportPoisoned({ seq, kind, body }: QueuedRow, attempts: number, reason: string): void {
    const origin = originOf(body);
    if (isOutboxLine(origin)) return;
    const { sessionId } = origin;
    const of = sessionId === undefined ? '' : `, session ${sessionId}`;
    const message = `record rejected permanently and set aside: seq ${seq}, kind ${kind}${of}, attempts ${attempts}, reason: ${reason}; resend or discard it with "interlude outbox"`;
    this.#options.onNotice({ level: 'fatal', kind: 'poisoned', seq, sessionId, message });
  }

  #nextEpoch(): number {
    this.#refusedUpTo = [];
    return Math.max(this.#options.clock.now(), this.#store.producer.epoch + 1);
  }
}

interface RecordOrigin {
  sessionId?: string | undefined;
  log?: { component?: unknown };
}

function originOf(body = '{}'): RecordOrigin {
  return JSON.parse(body) as RecordOrigin;
}

/** Clock and randomness, injectable for tests. */
export interface OutboxClock {
  /** Epoch milliseconds. */
  now(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** Calls `run` once after `ms`. @returns a function that cancels it */
  after(ms: number, run: () => void): () => void;
}

export const systemClock: OutboxClock = {
  now: Date.now,
  random: Math.random,
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

type SendOutcome =
  | { kind: 'acked'; ackedSeq: number; hadDuplicates: boolean; rejected: IngestResponse['rejected'] }
  | { kind: 'gap'; expectedSeq: number }
  | { kind: 'fenced'; message: string }
  /**
   * The epoch is ahead of the server's clock. `now`: server time, epoch milliseconds. `currentEpoch`: newest epoch that
   * has written, 0 if none.
   */
  | { kind: 'ahead'; now: number; currentEpoch: number; message: string }
  | { kind: 'unauthorized'; message: string }
  /** The server will never accept this request. */
  | { kind: 'refused'; message: string }
  | { kind: 'unavailable'; message: string; retryAfterMs: number | null };

interface SendOptions {
  endpoint: Endpoint;
  producer: ProducerRef;
  rows: QueuedRow[];
  timeoutMs: number;
  signal: AbortSignal;
}

const COMPRESS_FROM_BYTES = 1_024;
const LONGEST_RETRY_AFTER_MS = 3_600_000;
const compress = promisify(gzip);

/**
 * Sends one request and classifies the response.
 *
 * Failure: `unavailable` covers everything that is not Interlude's own verdict about these records: no connection, a
 * timeout, a truncated response, a proxy page, any 5xx. It never counts against the records.
 */
export async function send({ endpoint, producer, rows, timeoutMs, signal }: SendOptions): Promise<SendOutcome> {
  try {
    // The bodies are JSON already.
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
      return interpret(response, await response.text());
    });
  } catch (error) {
    return { kind: 'unavailable', message: connectionMessage(error), retryAfterMs: null };
  }
}

/** The server rejects it as a gap, reports the expected `seq`, and stores nothing. */
const PROBE: QueuedRow = { seq: Number.MAX_SAFE_INTEGER, kind: 'probe', body: '{"kind":"probe"}' };

/**
 * Asks for the next `seq` that the server expects, by sending one beyond it.
 * @returns null without such a response
 */
export async function readExpectedSeq(options: {
  endpoint: Endpoint;
  producer: ProducerRef;
  timeoutMs: number;
}): Promise<number | null> {
  const outcome = await send({ ...options, rows: [PROBE], signal: new AbortController().signal });
  return outcome.kind === 'gap' ? outcome.expectedSeq : null;
}

function interpret(response: Response, text: string): SendOutcome {
  if (response.status === 200) {
    const { ackedSeq, duplicates, rejected = [] } = (parseJson(text) ?? {}) as Partial<IngestResponse>;
    if (Number.isSafeInteger(ackedSeq))
      return { kind: 'acked', ackedSeq: ackedSeq as number, hadDuplicates: duplicates !== 0, rejected };
    return {
      kind: 'unavailable',
      message: `${response.url} is not an Interlude server: it answered 200 without ackedSeq`,
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
  // A proxy's 413 applies to this request too; a 400 counts only from Interlude itself.
  if (response.status === 413 || (response.status === 400 && error?.code !== undefined)) {
    return { kind: 'refused', message };
  }
  return { kind: 'unavailable', message, retryAfterMs: retryAfterMs(response.headers.get('retry-after')) };
}

function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS) : null;
}
