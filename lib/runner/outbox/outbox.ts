import { randomBytes } from 'node:crypto';
import { mkdir, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { IngestRecord } from '@interlude/protocol/envelope';
import { stringifyWellFormed } from '@interlude/protocol/json';
import { truncateText } from '@interlude/protocol/text';
import { LibsqlError } from '@libsql/client';
import { ProcessLock } from '../host/process-lock';
import type { Endpoint } from '../host/server-request';
import { type Bound, type Candidate, candidateOf, lostCandidate } from './append-plan';
import { Deliverer, type OutboxClock, type OutboxNotice, readExpectedSeq, systemClock } from './delivery';
import { Drain, type DrainState, type Trouble } from './drain';
import type { Cursor } from './statements';
import { type Append, OutboxStore } from './store';

/** Not `Omit`, which drops the known keys of records with an index signature. */
type WithoutSeq<R> = R extends unknown ? { [Key in keyof R as Key extends 'seq' ? never : Key]: R[Key] } : never;
/** A record without its sequence number. */
export type OutgoingRecord = WithoutSeq<IngestRecord>;

export interface OutboxOptions {
  /** Producer id of a new file; an existing file keeps its own. Default: derived from `agentId`. */
  producerId?: string;
  agentId: string;
  endpoint: Endpoint;
  /** Sends queued records on open. Default true; if false, `kick` starts sending. */
  sendAtOpen?: boolean;
  onStatus?: (status: OutboxStatus) => void;
  onNotice?: (notice: OutboxNotice) => void;
  clock?: OutboxClock;
  /** Default: 1,000,000 records and 1 GiB. `append-plan` decides what is dropped first. */
  bound?: Bound;
  maxBatchRows?: number;
  maxBatchBytes?: number;
  requestTimeoutMs?: number;
}

export interface OutboxStatus {
  state: DrainState;
  producer: { id: string; epoch: number };
  /** Unacknowledged records. */
  waiting: number;
  lastSeq: number;
  trouble: Trouble | null;
}

/** For the status record. */
export interface OutboxFacts {
  depth: number;
  /** Age of the oldest queued record in milliseconds; null if the queue is empty. */
  oldestAgeMs: number | null;
  /** Records rejected permanently. */
  poisoned: number;
}

interface Pending extends Append {
  resolve: () => void;
  reject: (reason: unknown) => void;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** Interval of the search for records that an operator wants sent again. */
const REDRIVE_MS = 5_000;
const DEFAULT_BOUND: Bound = { maxRows: 1_000_000, maxBytes: 1024 ** 3 };

/**
 * A durable, ordered queue between an agent and the server. A record accepted by `enqueue` reaches the server exactly
 * once and in order, or is declared lost in its place.
 *
 * Ordering: records leave in the order of the `enqueue` calls. Calls within one tick share a transaction.
 * Failure: outages never use up attempts. A kill loses no record for which `enqueue` resolved. A full or damaged outbox
 * declares its losses with `lost` records.
 *
 * @example
 * const outbox = await Outbox.open(file, { agentId, endpoint });
 * await outbox.enqueue({ kind: 'event', agentId, sessionId, occurredAt: Date.now(), event });
 */
export class Outbox {
  readonly #file: string;
  readonly #options: OutboxOptions;
  readonly #clock: OutboxClock;
  readonly #lock: ProcessLock;
  #store: OutboxStore;
  #deliverer: Deliverer;
  readonly #drain: Drain;
  #pending: Pending[] = [];
  #committing: Promise<void> | null = null;
  #stopped = false;
  readonly #redriving: NodeJS.Timeout;
  readonly #watchers = new Set<() => void>();

  private constructor(file: string, options: OutboxOptions, clock: OutboxClock, lock: ProcessLock, store: OutboxStore) {
    this.#file = file;
    this.#options = options;
    this.#clock = clock;
    this.#lock = lock;
    this.#store = store;
    this.#deliverer = this.#newDeliverer();
    this.#drain = new Drain(
      clock,
      (signal) => this.#deliver(signal),
      () => this.#changed(),
    );
    // Uses real time, not `clock`, because operators wait for it.
    this.#redriving = setInterval(() => void this.queueRedrives().catch(() => undefined), REDRIVE_MS);
    this.#redriving.unref();
  }

  /**
   * Opens or creates the file and starts sending.
   * @throws ProcessLockedError when another process has it open
   * @throws OutboxVersionError when another version of Interlude wrote it
   */
  static async open(file: string, options: OutboxOptions): Promise<Outbox> {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    const clock = options.clock ?? systemClock;
    // A separate lock file keeps the outbox readable. Two processes would assign the same sequence numbers.
    const lock = await ProcessLock.acquire(`${file}.lock`, `the outbox ${file}`);
    try {
      const store = await openStore(storePlace(file, options, clock));
      await store.queueRedrives(clock.now());
      const outbox = new Outbox(file, options, clock, lock, store);
      if (store.waiting > 0 && options.sendAtOpen !== false) outbox.#drain.work();
      return outbox;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  get agentId(): string {
    return this.#options.agentId;
  }

  get status(): OutboxStatus {
    return {
      state: this.#drain.state,
      producer: this.#store.producer,
      waiting: this.#store.waiting,
      lastSeq: this.#store.lastSeq,
      trouble: this.#drain.trouble,
    };
  }

  /**
   * Stores records. Once this resolves they survive the process.
   * @param cursor stored in the same transaction: the position of the source, or other restart state
   * @throws Error after `stop`, or when the disk rejects the write
   */
  enqueue(records: OutgoingRecord | OutgoingRecord[], cursor?: Cursor | Cursor[]): Promise<void> {
    if (this.#stopped) throw new Error('the outbox is stopped and accepts no more records');
    const candidates = (Array.isArray(records) ? records : [records]).map(candidate);
    return new Promise((resolve, reject) => {
      const cursors = cursor === undefined ? [] : Array.isArray(cursor) ? cursor : [cursor];
      this.#pending.push({ candidates, cursors, resolve, reject });
      this.#committing ??= new Promise<void>((done) => setImmediate(done)).then(() => this.#commit());
    });
  }

  cursor(name: string): Promise<string | null> {
    return this.#store.cursor(name);
  }

  /** Cursors by name. */
  cursors(prefix: string): Promise<Map<string, string>> {
    return this.#store.cursors(prefix);
  }

  /** Never rejects: an unreadable file reports zeros, and its trouble surfaces elsewhere. */
  async facts(): Promise<OutboxFacts> {
    const { oldestAt, poisoned } = await this.#store.figures().catch(() => ({ oldestAt: null, poisoned: 0 }));
    const oldestAgeMs = oldestAt === null ? null : Math.max(0, this.#clock.now() - oldestAt);
    return { depth: this.#store.waiting, oldestAgeMs, poisoned };
  }

  /**
   * True if the server still has everything it acknowledged; null if it can't be asked. False if its database was
   * deleted or another server responds.
   */
  async isRemembered(): Promise<boolean | null> {
    const { endpoint, requestTimeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const { producer, lastSeq, waiting } = this.#store;
    const expectedSeq = await readExpectedSeq({
      endpoint,
      producer,
      timeoutMs: requestTimeoutMs,
    });
    return expectedSeq === null ? null : expectedSeq > lastSeq - waiting;
  }

  /** Queues the records that an operator wants sent again. @returns their number */
  async queueRedrives(): Promise<number> {
    if (this.#stopped) return 0;
    const redriven = await this.#withStore((store) => store.queueRedrives(this.#clock.now()));
    if (redriven > 0) this.#drain.work();
    return redriven;
  }

  /** Retries now, because the server seems to be back. */
  kick(): void {
    this.#drain.kick();
  }

  /** Resolves when everything is acknowledged, another producer has taken over, or the signal fires. */
  async idle(signal?: AbortSignal): Promise<OutboxStatus> {
    while (!this.#isIdle() && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#watchers.delete(wake);
          signal?.removeEventListener('abort', wake);
          resolve();
        };
        this.#watchers.add(wake);
        signal?.addEventListener('abort', wake);
      });
    }
    return this.status;
  }

  /**
   * Accepts nothing more, stores pending records, keeps sending for up to `flushMs`, and closes the file.
   * @returns the number of unsent records, which the next outbox on this file sends
   */
  async stop({ flushMs = 0 }: { flushMs?: number } = {}): Promise<{ waiting: number }> {
    if (this.#stopped) return { waiting: this.#store.waiting };
    this.#stopped = true;
    clearInterval(this.#redriving);
    await this.#committing;
    if (flushMs > 0 && !this.#isIdle()) {
      const deadline = new AbortController();
      const cancel = this.#clock.after(flushMs, () => deadline.abort());
      await this.idle(deadline.signal);
      cancel();
    }
    await this.#drain.stop();
    await this.#store.close();
    await this.#lock.release();
    return { waiting: this.#store.waiting };
  }

  #isIdle(): boolean {
    const { state } = this.#drain;
    const isEmpty = this.#store.waiting === 0 && this.#pending.length === 0 && this.#committing === null;
    return state === 'stopped' || state === 'fenced' || (isEmpty && state === 'idle');
  }

  async #commit(): Promise<void> {
    while (this.#pending.length > 0) {
      const group = this.#pending;
      this.#pending = [];
      try {
        const { dropped, tooLarge } = await this.#withStore((store) => store.append(group, this.#clock.now()));
        for (const { resolve } of group) resolve();
        if (dropped > 0) this.#dropped(dropped, 'the outbox is full');
        if (tooLarge > 0) this.#dropped(tooLarge, 'too large for any request');
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
      this.#drain.work();
    }
    this.#committing = null;
    this.#changed();
  }

  #deliver(signal: AbortSignal) {
    return this.#withStore(() => this.#deliverer.deliver(signal));
  }

  /** Replaces the file if it turns out to be damaged, then repeats the work. */
  async #withStore<Result>(work: (store: OutboxStore) => Promise<Result>): Promise<Result> {
    const store = this.#store;
    try {
      return await work(store);
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      // Appending and delivering may both find the damage; the first one replaces the file.
      if (this.#store === store) {
        await store.close();
        this.#store = await replaceCorrupt(storePlace(this.#file, this.#options, this.#clock), store.producer, error);
        this.#deliverer = this.#newDeliverer();
      }
      return await work(this.#store);
    }
  }

  #newDeliverer(): Deliverer {
    return new Deliverer({
      store: this.#store,
      endpoint: this.#options.endpoint,
      clock: this.#clock,
      maxBatchRows: this.#options.maxBatchRows ?? 500,
      maxBatchBytes: this.#options.maxBatchBytes ?? 1024 ** 2,
      requestTimeoutMs: this.#options.requestTimeoutMs ?? DEFAULT_TIMEOUT_MS,
      onNotice: (notice) => this.#options.onNotice?.(notice),
    });
  }

  #dropped(count: number, why: string): void {
    const message = `${count} record(s) dropped and declared lost: ${why}`;
    this.#options.onNotice?.({ level: 'error', kind: 'dropped', count, message });
  }

  #changed(): void {
    this.#options.onStatus?.(this.status);
    if (this.#watchers.size > 0) for (const wake of [...this.#watchers]) wake();
  }
}

function candidate(record: OutgoingRecord): Candidate {
  // A given `seq` would override the assigned one.
  return candidateOf(stringifyWellFormed({ ...record, seq: undefined }), record);
}

function storePlace(file: string, options: OutboxOptions, clock: OutboxClock): StorePlace {
  const { agentId, onNotice, bound = DEFAULT_BOUND } = options;
  const { producerId = `${truncateText(agentId, 200)}/${randomBytes(6).toString('hex')}` } = options;
  return { file, producerId, agentId, onNotice, bound, clock };
}

interface StorePlace {
  file: string;
  producerId: string;
  agentId: string;
  bound: Bound;
  clock: OutboxClock;
  onNotice?: (notice: OutboxNotice) => void;
}

/** The number of records in a damaged file is unknown, so one loss is declared. */
const UNKNOWN_COUNT = 1;

const CORRUPT = ['SQLITE_CORRUPT', 'SQLITE_NOTADB'];

/**
 * Opens the outbox file, or replaces a damaged one.
 *
 * Failure: a damaged file is renamed. Its replacement has a new epoch and begins with a `lost` record.
 */
async function openStore(place: StorePlace): Promise<OutboxStore> {
  const birth = { producerId: place.producerId, epoch: place.clock.now() };
  try {
    return await OutboxStore.open(place.file, birth, place.bound);
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    return await replaceCorrupt(place, { id: place.producerId, epoch: 0 }, error);
  }
}

/** @param was the producer id of the damaged file, if known */
async function replaceCorrupt(
  { file, agentId, bound, clock, onNotice }: StorePlace,
  was: { id: string; epoch: number },
  cause: unknown,
): Promise<OutboxStore> {
  const now = clock.now();
  const aside = await setAside(file, now);
  const store = await OutboxStore.open(file, { producerId: was.id, epoch: Math.max(now, was.epoch + 1) }, bound);
  await store.append(
    [{ candidates: [lostCandidate({ agentId, occurredAt: now }, UNKNOWN_COUNT, 'outbox-corrupt')] }],
    now,
  );
  const reason = cause instanceof Error ? cause.message : String(cause);
  onNotice?.({
    level: 'error',
    kind: 'corrupt',
    file: aside,
    count: UNKNOWN_COUNT,
    message: `the outbox was damaged (${reason}) and replaced; the damaged file is kept as ${aside}`,
  });
  return store;
}

function isCorrupt(error: unknown): boolean {
  return error instanceof LibsqlError && CORRUPT.some((code) => error.code.startsWith(code));
}

/** Renames the file with its WAL, which must not be replayed into the new file. */
async function setAside(file: string, now: number): Promise<string> {
  const aside = `${file}.corrupt-${now}`;
  await rename(file, aside);
  for (const suffix of ['-wal', '-shm']) await rename(file + suffix, aside + suffix).catch(() => undefined);
  return aside;
}
