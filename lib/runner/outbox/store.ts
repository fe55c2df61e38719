import { type Client, createClient, LibsqlError } from '@libsql/client';
import { makePrivate } from '../host/data-folder.mjs';
import {
  type Bound,
  type Candidate,
  candidateOf,
  type LostReason,
  lostCandidate,
  type OpenLost,
  planAppend,
  type QueueEnd,
} from './append-plan';
import {
  type Cursor,
  cursorStatement,
  insertStatements,
  OUTBOX_PRAGMAS,
  OUTBOX_SCHEMA,
  OUTBOX_VERSION,
  oldestAt,
  poisonStatement,
  READ_FILL,
  READ_IDENTITY,
  READ_OLDEST,
  updateStatement,
} from './statements';
import { READ_STATUSES, statusStatements, WaitingStatuses } from './waiting-statuses';

export interface QueuedRow {
  seq: number;
  kind: string;
  /** Record JSON without `seq`. */
  body: string;
}

export interface Append {
  candidates: Candidate[];
  cursors?: Cursor[];
}

export interface OutboxIdentity {
  producerId: string;
  /** Epoch of a new file, in milliseconds. */
  epoch: number;
}

/**
 * Reads and writes the outbox file. Nothing else writes SQL.
 *
 * Ordering: `seq` is dense within an epoch and assigned in the transaction that stores the record. Operations run one
 * at a time, so counters stay valid until commit.
 * Failure: every operation is one transaction. A record leaves the queue only when acknowledged, or into `poisoned`
 * with a `lost` record in its place. A newer status record of the same session may get the number of an older one.
 */
export class OutboxStore {
  readonly #client: Client;
  readonly #bound: Bound;
  #producerId = '';
  #epoch = 0;
  #lastSeq = 0;
  #rows = 0;
  #bytes = 0;
  /** The server may have every record up to this `seq`, so their content is frozen. */
  #frozenSeq = 0;
  #openedSeq = 0;
  #openLosts: ReadonlyMap<string, OpenLost> = new Map();
  #statuses = new WaitingStatuses();
  #tail: Promise<unknown> = Promise.resolve();

  private constructor(client: Client, bound: Bound) {
    this.#client = client;
    this.#bound = bound;
  }

  /**
   * @throws LibsqlError if the file is damaged: see `isCorrupt` in outbox.ts
   * @throws OutboxVersionError when another version of Interlude wrote the file, which stays untouched
   */
  static async open(file: string, initial: OutboxIdentity, bound: Bound): Promise<OutboxStore> {
    // SQLite creates its side files with the same mode
    makePrivate(file);
    const client = createClient({ url: `file:${file}`, concurrency: 1 });
    const store = new OutboxStore(client, bound);
    try {
      for (const pragma of OUTBOX_PRAGMAS) await client.execute(pragma);
      await store.#load(file, initial);
      return store;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  get producer(): { id: string; epoch: number } {
    return { id: this.#producerId, epoch: this.#epoch };
  }

  /** The newest assigned `seq` of this epoch. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The newest `seq` when the file was opened; 0 for a new file. */
  get openedSeq(): number {
    return this.#openedSeq;
  }

  get waiting(): number {
    return this.#rows + this.#statuses.deferred;
  }

  async #load(file: string, initial: OutboxIdentity): Promise<void> {
    const version = Number((await this.#client.execute('PRAGMA user_version')).rows[0]?.user_version);
    if (version !== 0 && version !== OUTBOX_VERSION) throw new OutboxVersionError(file, version);
    if (version === 0) {
      await this.#client.batch(
        [
          ...OUTBOX_SCHEMA,
          {
            sql: 'INSERT INTO outbox (one, producer_id, epoch, last_seq) VALUES (1, ?, ?, 0)',
            args: [initial.producerId, initial.epoch],
          },
        ],
        'write',
      );
    } else {
      const check = (await this.#client.execute('PRAGMA quick_check(1)')).rows[0]?.quick_check;
      if (check !== 'ok') throw new LibsqlError(`the outbox is damaged: ${check}`, 'SQLITE_CORRUPT');
    }
    const [identity, fill, statuses] = await this.#client.batch([READ_IDENTITY, READ_FILL, READ_STATUSES], 'read');
    const row = identity?.rows[0];
    if (!row) throw new LibsqlError('the outbox has lost its identity', 'SQLITE_CORRUPT');
    this.#producerId = String(row.producer_id);
    this.#epoch = Number(row.epoch);
    this.#lastSeq = Math.max(Number(row.last_seq), Number(fill?.rows[0]?.seq));
    this.#rows = Number(fill?.rows[0]?.rows);
    this.#bytes = Number(fill?.rows[0]?.bytes);
    this.#statuses = new WaitingStatuses(statuses?.rows, this.#lastSeq);
    // An earlier process may have sent anything in the file, so all of it is frozen.
    this.#frozenSeq = this.#lastSeq;
    this.#openedSeq = this.#lastSeq;
  }

  /**
   * Stores everything in one transaction; durable when it resolves, except a status record that replaces one in the
   * current request.
   * @returns counts of dropped records, for the log
   */
  append(appends: Append[], now: number): Promise<{ dropped: number; tooLarge: number }> {
    return this.#alone(() => this.#append(appends, now));
  }

  async #append(appends: Append[], now: number): Promise<{ dropped: number; tooLarge: number }> {
    const statuses = this.#statuses.plan(appends.flatMap((append) => append.candidates));
    const { rows, changes, poisoned, after, dropped } = planAppend(this.#end(), statuses.added, this.#bound);
    const cursors = appends.flatMap((append) => (append.cursors ?? []).map(cursorStatement));
    const statements = [
      ...insertStatements(rows),
      ...[...changes.values()].map(updateStatement),
      ...statusStatements(statuses),
      ...poisoned.map(({ seq, body }) => poisonStatement(this.#epoch, seq, 'record-too-large', now, body)),
      ...cursors,
    ];
    if (statements.length > 0) await this.#client.batch(statements, 'write');
    this.#adopt(after);
    this.#bytes += statuses.bytes;
    this.#statuses.adopt(statuses, rows);
    return { dropped, tooLarge: poisoned.length };
  }

  #end(): QueueEnd {
    const openLosts = new Map([...this.#openLosts].filter(([, lost]) => lost.seq > this.#frozenSeq));
    return { seq: this.#lastSeq, rows: this.#rows, bytes: this.#bytes, openLosts };
  }

  #adopt({ seq, rows, bytes, openLosts }: QueueEnd): void {
    this.#lastSeq = seq;
    this.#rows = rows;
    this.#bytes = bytes;
    this.#openLosts = openLosts;
  }

  /** Stores the status records that were deferred during the current request, which has completed. */
  completed(now: number): Promise<void> {
    return this.#alone(async () => {
      const candidates = this.#statuses.completed();
      if (candidates.length > 0) await this.#append([{ candidates }], now);
    });
  }

  /** The head of the queue: up to `maxRows` and `maxBytes`, but at least one record. */
  head(maxRows: number, maxBytes: number): Promise<QueuedRow[]> {
    return this.#alone(async () => {
      const sizes = await this.#client.execute({
        sql: 'SELECT seq, bytes FROM queue ORDER BY seq LIMIT ?',
        args: [maxRows],
      });
      let [total, upTo] = [0, 0];
      for (const row of sizes.rows) {
        total += Number(row.bytes);
        if (upTo > 0 && total > maxBytes) break;
        upTo = Number(row.seq);
      }
      if (upTo === 0) return [];
      const found = await this.#client.execute({
        sql: 'SELECT seq, kind, body FROM queue WHERE seq <= ? ORDER BY seq',
        args: [upTo],
      });
      this.#frozenSeq = Math.max(this.#frozenSeq, upTo);
      this.#statuses.sending(upTo);
      return found.rows.map((row) => ({ seq: Number(row.seq), kind: String(row.kind), body: String(row.body) }));
    });
  }

  /**
   * Removes acknowledged records.
   * @param hadDuplicates the server may have had some of them before
   */
  acknowledge(seq: number, hadDuplicates: boolean): Promise<void> {
    return this.#alone(async () => {
      const [removed] = await this.#client.batch(
        [
          { sql: 'SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes FROM queue WHERE seq <= ?', args: [seq] },
          { sql: 'DELETE FROM queue WHERE seq <= ?', args: [seq] },
          { sql: 'UPDATE outbox SET last_seq = max(last_seq, ?)', args: [seq] },
        ],
        'write',
      );
      this.#rows -= Number(removed?.rows[0]?.rows);
      this.#bytes -= Number(removed?.rows[0]?.bytes);
      // An open `lost` record that left the queue must not count further drops.
      this.#frozenSeq = Math.max(this.#frozenSeq, seq);
      this.#statuses.acknowledged(seq, hadDuplicates);
    });
  }

  /** Moves a permanently rejected record to `poisoned` and puts a `lost` record in its place. */
  poison(row: QueuedRow, reason: string, now: number): Promise<void> {
    return this.#alone(async () => {
      const record = JSON.parse(row.body) as { agentId: string; sessionId?: string; occurredAt: number };
      const { kind, bytes, body } = lostCandidate(record, 1, 'refused-by-server');
      await this.#client.batch(
        [
          poisonStatement(this.#epoch, row.seq, reason, now, row.body),
          updateStatement({ seq: row.seq, kind, bytes, body }),
        ],
        'write',
      );
      this.#bytes += bytes - Buffer.byteLength(row.body);
      this.#statuses.drop(row.seq);
    });
  }

  /** Starts a new epoch and renumbers the queue from 1, behind a `lost` record if `lost` is given. */
  renumber(
    epoch: number,
    lost: { agentId: string; sessionId?: string; occurredAt: number; count: number; reason: LostReason } | null,
  ): Promise<void> {
    return this.#alone(async () => {
      const first = await this.#client.execute('SELECT min(seq) AS seq FROM queue');
      const shift = Number(first.rows[0]?.seq ?? 1) - (lost ? 2 : 1);
      const declared = lost ? [{ ...lostCandidate(lost, lost.count, lost.reason), seq: 1 }] : [];
      const lastSeq = this.#rows + declared.length;
      await this.#client.batch(
        [
          // Uses negative numbers first, because rows would collide with rows that have not moved yet.
          { sql: 'UPDATE queue SET seq = -(seq - ?)', args: [shift] },
          'UPDATE queue SET seq = -seq',
          ...insertStatements(declared),
          { sql: 'UPDATE outbox SET epoch = ?, last_seq = ?', args: [epoch, lastSeq] },
        ],
        'write',
      );
      this.#epoch = epoch;
      this.#lastSeq = lastSeq;
      this.#rows = lastSeq;
      this.#bytes += declared[0]?.bytes ?? 0;
      this.#frozenSeq = lastSeq;
      this.#openLosts = new Map();
      this.#statuses.renumber(shift);
    });
  }

  cursor(name: string): Promise<string | null> {
    return this.#alone(async () => {
      const found = await this.#client.execute({ sql: 'SELECT value FROM cursors WHERE name = ?', args: [name] });
      const value = found.rows[0]?.value;
      return value === undefined || value === null ? null : String(value);
    });
  }

  cursors(prefix: string): Promise<Map<string, string>> {
    return this.#alone(async () => {
      const found = await this.#client.execute({
        sql: 'SELECT name, value FROM cursors WHERE substr(name, 1, ?) = ? ORDER BY name',
        args: [prefix.length, prefix],
      });
      return new Map(found.rows.map((row) => [String(row.name), String(row.value)]));
    });
  }

  /** Time of the oldest queued record, and the number of rejected ones. */
  figures(): Promise<{ oldestAt: number | null; poisoned: number }> {
    return this.#alone(async () => {
      const [oldest, poisoned] = await this.#client.batch(
        [READ_OLDEST, "SELECT count(*) AS rows FROM poisoned WHERE state = 'kept'"],
        'read',
      );
      return { oldestAt: oldestAt(oldest), poisoned: Number(poisoned?.rows[0]?.rows) };
    });
  }

  /**
   * Appends the records that an operator wants sent again.
   * @returns how many were appended: all, or 0 if not all fit
   */
  queueRedrives(now: number): Promise<number> {
    return this.#alone(async () => {
      const found = await this.#client.execute(
        "SELECT id, body FROM poisoned WHERE state = 'redrive' ORDER BY id LIMIT 100",
      );
      if (found.rows.length === 0) return 0;
      const candidates = found.rows.map((row) => candidateOf(String(row.body)));
      const { rows, poisoned, dropped, after } = planAppend(this.#end(), candidates, this.#bound);
      if (dropped > 0 || poisoned.length > 0) return 0;
      await this.#client.batch(
        [
          ...insertStatements(rows),
          ...found.rows.map((row) => ({
            sql: "UPDATE poisoned SET state = 'redriven', decided_at = ? WHERE id = ?",
            args: [now, Number(row.id)],
          })),
        ],
        'write',
      );
      this.#adopt(after);
      return rows.length;
    });
  }

  close(): Promise<void> {
    return this.#alone(async () => this.#client.close());
  }

  #alone<Result>(operation: () => Promise<Result>): Promise<Result> {
    const result = this.#tail.then(operation);
    this.#tail = result.catch(() => undefined);
    return result;
  }
}

export class OutboxVersionError extends Error {
  constructor(file: string, version: number) {
    const [age, next] =
      version > OUTBOX_VERSION
        ? ['a newer', 'update this Interlude']
        : ['an older', 'send its records with the version that wrote it, then move the file away'];
    super(`${file} was written by ${age} version of Interlude; ${next}`);
    this.name = 'OutboxVersionError';
  }
}
