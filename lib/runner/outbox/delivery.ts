import type { IngestAnswer } from '@interlude/protocol/envelope';
import type { Endpoint } from '../host/server-request';
import { isOutboxLine } from './candidate';
import type { OutboxClock } from './clock';
import { PROBE, type SendOutcome, send } from './send';
import type { OutboxStore, QueuedRow } from './store';

/**
 * One step of the drain: the head of the queue is sent, and the server's answer is applied to the file.
 *
 * Ordering: the head and nothing else. A record that is refused by itself gives its `seq` to a `lost` record before
 * anything behind it is sent.
 * Failure: an answer changes the file in one transaction or not at all. What was sent and not acknowledged is sent
 * again with the same `seq`; the server counts it as a duplicate.
 */
export type Delivery =
  | { kind: 'delivered' }
  | { kind: 'emptied' }
  | { kind: 'held'; cause: HeldCause; message: string; retryAfterMs: number | null }
  | { kind: 'fenced'; message: string };

export type HeldCause = 'unavailable' | 'unauthorized' | 'refused' | 'storage';

/** What a person should know of. */
export type OutboxNotice =
  | { level: 'fatal'; kind: 'poisoned'; seq: number; sessionId: string | undefined; message: string }
  | { level: 'error'; kind: 'corrupt'; file: string; count: number; message: string }
  | { level: 'error'; kind: 'lost-by-server'; count: number; message: string }
  | { level: 'error'; kind: 'rewound'; message: string }
  | { level: 'error'; kind: 'dropped'; count: number; message: string }
  | { level: 'warn'; kind: 'clock-ahead'; message: string }
  | { level: 'warn'; kind: 'passed-over'; message: string }
  | { level: 'warn'; kind: 'quarantined'; rejected: Rejected[]; message: string };

/** A record in quarantine, with the session that it names. */
type Rejected = IngestAnswer['rejected'][number] & { sessionId?: string | undefined };

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

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #store: OutboxStore;
  /** Shrinks while a request is refused as a whole, to find the record it is refused for. */
  #batchRows: number;
  /** The last record of each request that was refused, while the one to blame is searched for. */
  #refusedUpTo: number[] = [];
  /** The server is not ahead of the file as it was opened. */
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
      await this.#store.landed(this.#options.clock.now());
    }
  }

  /**
   * A file that was there before may be an old copy of itself. What it numbers now would pass for duplicates of what the
   * server has, so it asks first how far the server is. @returns null to go on
   */
  async #checked(signal: AbortSignal): Promise<Delivery | null> {
    const { endpoint, requestTimeoutMs: timeoutMs } = this.#options;
    const { producer, openedSeq } = this.#store;
    if (this.#isChecked || openedSeq === 0) return null;
    const outcome = await send({ endpoint, producer, rows: [PROBE], timeoutMs, signal });
    switch (outcome.kind) {
      case 'unauthorized':
        return { kind: 'held', cause: 'unauthorized', message: outcome.message, retryAfterMs: null };
      case 'unavailable':
        return { kind: 'held', cause: 'unavailable', message: outcome.message, retryAfterMs: outcome.retryAfterMs };
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
        return { kind: 'held', cause: 'unauthorized', message: outcome.message, retryAfterMs: null };
      case 'unavailable':
        return { kind: 'held', cause: 'unavailable', message: outcome.message, retryAfterMs: outcome.retryAfterMs };
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
      return { kind: 'held', cause: 'unavailable', message, retryAfterMs: null };
    }
    if (ackedSeq > this.#store.lastSeq) return this.#rewound(ackedSeq);
    await this.#store.acknowledge(Math.min(ackedSeq, last.seq), hadDuplicates);
    this.#batchRows = Math.min(this.#batchRows * 2, this.#options.maxBatchRows);
    const bodies = new Map(rows.map(({ seq, body }) => [seq, body]));
    const told = rejected.flatMap((one) => {
      const said = saidIn(bodies.get(one.seq));
      return isOutboxLine(said) ? [] : [{ ...one, sessionId: said.sessionId }];
    });
    const [one] = told;
    if (one !== undefined) {
      const message = `the server put ${told.length} record(s) into quarantine, the first: seq ${one.seq}, ${one.message}`;
      this.#options.onNotice({ level: 'warn', kind: 'quarantined', rejected: told, message });
    }
    return { kind: 'delivered' };
  }

  async #gap({ expectedSeq }: Answer<'gap'>, first: QueuedRow): Promise<Delivery> {
    if (expectedSeq > this.#store.lastSeq + 1) return this.#rewound(expectedSeq - 1);
    if (expectedSeq > first.seq) {
      await this.#store.acknowledge(expectedSeq - 1, true);
      return { kind: 'delivered' };
    }
    if (expectedSeq === first.seq) {
      const message = `the server expects record ${expectedSeq} and refuses it as a gap`;
      return { kind: 'held', cause: 'unavailable', message, retryAfterMs: null };
    }
    await this.#lostByServer(this.#nextEpoch(), first, first.seq - expectedSeq);
    return { kind: 'delivered' };
  }

  /** The server acknowledged `count` records once and no longer has them: its database was lost, or another one answers. */
  async #lostByServer(epoch: number, first: QueuedRow, count: number): Promise<void> {
    const { agentId, sessionId } = JSON.parse(first.body) as { agentId: string; sessionId?: string };
    const occurredAt = this.#options.clock.now();
    await this.#store.renumber(epoch, { agentId, sessionId, occurredAt, count, reason: 'lost-by-server' });
    const message = `the server no longer has ${count} record(s) it had acknowledged; they are declared lost`;
    this.#options.onNotice({ level: 'error', kind: 'lost-by-server', count, message });
  }

  /**
   * Restarts the outbox at the server's time, because its epoch is of a clock that is ahead. Waits instead if an earlier outbox
   * of this producer has written with an epoch that is just as far ahead.
   */
  async #ahead({ now, currentEpoch, message }: Answer<'ahead'>, first: QueuedRow): Promise<Delivery> {
    const { epoch } = this.#store.producer;
    const next = Math.max(now, currentEpoch + 1);
    if (next >= epoch) return { kind: 'held', cause: 'unavailable', message, retryAfterMs: null };
    this.#refusedUpTo = [];
    if (first.seq > 1) await this.#lostByServer(next, first, first.seq - 1);
    else await this.#store.renumber(next, null);
    const minutes = Math.ceil((epoch - now) / 60_000);
    const notice = `the outbox was created ${minutes} min ahead of the server's clock; restarted it at the server's time`;
    this.#options.onNotice({ level: 'warn', kind: 'clock-ahead', message: notice });
    return { kind: 'delivered' };
  }

  /**
   * The server has numbers this file has not given out: the file is an old copy of itself. Its numbers would pass for
   * duplicates, so what waits gets new ones: better twice than never.
   */
  async #rewound(serverSeq: number): Promise<Delivery> {
    await this.#store.renumber(this.#nextEpoch(), null);
    const message = `the outbox is an old copy of itself (the server has ${serverSeq}); what waits is sent again as new`;
    this.#options.onNotice({ level: 'error', kind: 'rewound', message });
    return { kind: 'delivered' };
  }

  async #refused({ message }: Answer<'refused'>, rows: QueuedRow[], first: QueuedRow): Promise<Delivery> {
    const upTo = rows.at(-1)?.seq ?? first.seq;
    this.#refusedUpTo = [...this.#refusedUpTo.filter((earlier) => earlier >= first.seq), upTo];
    if (rows.length > 1) {
      this.#batchRows = Math.ceil(rows.length / 2);
      return { kind: 'delivered' };
    }
    // A server that refuses even the declaration of a loss refuses everything; the records are not to blame.
    if (first.kind === 'lost') return { kind: 'held', cause: 'refused', message, retryAfterMs: null };
    const attempts = this.#refusedUpTo.length;
    await this.#store.poison(first, message, this.#options.clock.now());
    this.#tellOfPoison(first, attempts, message);
    return { kind: 'delivered' };
  }

  #tellOfPoison({ seq, kind, body }: QueuedRow, attempts: number, reason: string): void {
    const said = saidIn(body);
    if (isOutboxLine(said)) return;
    const { sessionId } = said;
    const of = sessionId === undefined ? '' : `, session ${sessionId}`;
    const message = `record refused for good and set aside: seq ${seq}, kind ${kind}${of}, attempts ${attempts}, reason: ${reason}`;
    this.#options.onNotice({ level: 'fatal', kind: 'poisoned', seq, sessionId, message });
  }

  #nextEpoch(): number {
    this.#refusedUpTo = [];
    return Math.max(this.#options.clock.now(), this.#store.producer.epoch + 1);
  }
}

interface Said {
  sessionId?: string | undefined;
  log?: { component?: unknown };
}

function saidIn(body = '{}'): Said {
  return JSON.parse(body) as Said;
}
