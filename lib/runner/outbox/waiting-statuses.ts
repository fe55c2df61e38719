import { fieldsOf } from '@interlude/protocol/fields';
import type { InStatement, Row } from '@libsql/client';
import { type Candidate, candidateOf, LARGEST_RECORD_BYTES } from './append-plan';
import { type NewRow, updateStatement } from './statements';

/**
 * Keeps at most one queued status record per agent and session. A newer record gets the number of the one it replaces,
 * so an outage leaves one record per session, with the last report.
 *
 * Ordering: the newest report comes last. When a record is replaced, those behind it move up one place and keep their
 * content.
 * Failure: records in the current request are frozen. Their replacements are deferred in memory until the request
 * completes, without transient fields if events of the session were stored since. After a lost response the server may
 * have the replaced content; if it reports duplicates, the replacement is sent again under its own number.
 */
export class WaitingStatuses {
  /** By agent and session, in queue order. */
  #waiting = new Map<string, WaitingStatus>();
  #deferred = new Map<string, Candidate>();
  /** Every record up to this `seq` is in the current request. */
  #inRequestSeq = 0;
  /** Every record up to this `seq` was in some request. */
  #carriedSeq: number;

  /**
   * @param rows result of READ_STATUSES
   * @param carriedSeq last `seq` that an earlier process may have sent
   */
  constructor(rows: readonly Row[] = [], carriedSeq = 0) {
    for (const { seq, bytes, body } of rows) {
      const text = String(body);
      const key = statusKey(JSON.parse(text));
      // the content may have been different when that process sent the record
      const isRewritten = Number(seq) <= carriedSeq;
      // only the newest record can be replaced; deleting first moves its key to the end
      this.#waiting.delete(key);
      this.#waiting.set(key, { seq: Number(seq), bytes: Number(bytes), body: text, isRewritten });
    }
    this.#carriedSeq = carriedSeq;
  }

  /** Number of deferred records. */
  get deferred(): number {
    return this.#deferred.size;
  }

  sending(upToSeq: number): void {
    this.#inRequestSeq = upToSeq;
    this.#carriedSeq = Math.max(this.#carriedSeq, upToSeq);
  }

  /** Handles the completion of the current request. @returns the deferred records */
  completed(): Candidate[] {
    this.#inRequestSeq = 0;
    return [...this.#deferred.values()];
  }

  /** Plans which records to append and which rows to replace, without changing state. */
  plan(candidates: readonly Candidate[]): StatusPlan {
    const newest = new Map<string, Candidate>();
    const overtaken = new Set<string>();
    for (const candidate of candidates) {
      const key = statusKey(candidate);
      if (isStatus(candidate)) {
        newest.set(key, candidate);
        overtaken.delete(key);
      } else if (candidate.kind !== 'log') overtaken.add(key);
    }
    const isOutdated = (one: Candidate) => isStatus(one) && newest.get(statusKey(one)) !== one;
    const isWaiting = (one: Candidate) => isStatus(one) && this.#waiting.has(statusKey(one));
    const plan: StatusPlan = {
      planned: [...newest.keys()],
      added: candidates.filter((one) => !isOutdated(one) && !isWaiting(one)),
      changed: new Map(),
      bytes: 0,
      waiting: new Map(this.#waiting),
      deferred: new Map(),
    };
    for (const [key, candidate] of this.#deferred) {
      if (overtaken.has(key) && !newest.has(key)) plan.deferred.set(key, withoutTransientFields(candidate));
    }
    for (const [key, candidate] of newest) {
      const older = plan.waiting.get(key);
      if (older === undefined) continue;
      if (older.seq <= this.#inRequestSeq) {
        plan.deferred.set(key, overtaken.has(key) ? withoutTransientFields(candidate) : candidate);
        continue;
      }
      plan.bytes += candidate.bytes - older.bytes;
      for (const [name, status] of shiftedRows(plan.waiting, key, candidate)) {
        plan.changed.set(status.seq, status);
        plan.waiting.delete(name);
        plan.waiting.set(name, { ...status, isRewritten: status.seq <= this.#carriedSeq });
      }
    }
    return plan;
  }

  /** Adopts a plan that is now stored. @param rows the appended rows */
  adopt(plan: StatusPlan, rows: readonly NewRow[]): void {
    this.#waiting = plan.waiting;
    for (const { kind, seq, bytes, body } of rows) {
      if (kind === 'status') this.#waiting.set(statusKey(JSON.parse(body)), { seq, bytes, body, isRewritten: false });
    }
    // deferred records are part of the plan or replaced by it
    for (const key of plan.planned) this.#deferred.delete(key);
    for (const [key, candidate] of plan.deferred) this.#deferred.set(key, candidate);
  }

  /** @param hadDuplicates the server had some of them before, with their earlier content */
  acknowledged(upToSeq: number, hadDuplicates: boolean): void {
    for (const [key, { seq, body, isRewritten }] of this.#waiting) {
      if (seq > upToSeq) continue;
      this.#waiting.delete(key);
      if (hadDuplicates && isRewritten && !this.#deferred.has(key)) {
        this.#deferred.set(key, withoutTransientFields(candidateOf(body)));
      }
    }
  }

  drop(seq: number): void {
    for (const [key, status] of this.#waiting) if (status.seq === seq) this.#waiting.delete(key);
  }

  /** Shifts all numbers for a new epoch, in which nothing has been sent. */
  renumber(lessBy: number): void {
    this.#carriedSeq = 0;
    this.#waiting = new Map(
      [...this.#waiting].map(([key, status]) => [key, { ...status, seq: status.seq - lessBy, isRewritten: false }]),
    );
  }
}

interface WaitingStatus {
  seq: number;
  bytes: number;
  body: string;
  /** True if a request may have carried earlier content of this row. */
  isRewritten: boolean;
}

export interface StatusPlan {
  /** Keys whose report is stored or deferred. */
  planned: string[];
  added: Candidate[];
  /** Replaced rows by `seq`. */
  changed: Map<number, Omit<WaitingStatus, 'isRewritten'>>;
  /** Size change of the queue. */
  bytes: number;
  waiting: Map<string, WaitingStatus>;
  deferred: Map<string, Candidate>;
}

export const READ_STATUSES = "SELECT seq, bytes, body FROM queue WHERE kind = 'status' ORDER BY seq";

export function statusStatements({ changed }: StatusPlan): InStatement[] {
  return [...changed.values()].map((row) => updateStatement({ kind: 'status', ...row }));
}

/** Fields that later events make obsolete. */
const TRANSIENT_FIELDS = ['process', 'state', 'openTurnId', 'tasks', 'requests'];

function withoutTransientFields(candidate: Candidate): Candidate {
  const record = fieldsOf(JSON.parse(candidate.body));
  const status = Object.fromEntries(
    Object.entries(fieldsOf(record.status)).filter(([name]) => !TRANSIENT_FIELDS.includes(name)),
  );
  return candidateOf(JSON.stringify({ ...record, status }));
}

/** An oversized status record replaces nothing, because it is refused and declared lost. */
function isStatus({ kind, bytes }: Candidate): boolean {
  return kind === 'status' && bytes <= LARGEST_RECORD_BYTES;
}

/** Rows from the replaced one on, with their shifted content. */
function shiftedRows(
  waiting: ReadonlyMap<string, WaitingStatus>,
  key: string,
  { body, bytes }: Candidate,
): [string, Omit<WaitingStatus, 'isRewritten'>][] {
  const from = waiting.get(key)?.seq ?? 0;
  const rows = [...waiting].filter(([, { seq }]) => seq >= from);
  const seqs = rows.map(([, { seq }]) => seq);
  const shifted = rows.slice(1).map(([name, status]) => ({ name, body: status.body, bytes: status.bytes }));
  return [...shifted, { name: key, body, bytes }].map(({ name, ...content }, index) => [
    name,
    { ...content, seq: seqs[index] as number },
  ]);
}

function statusKey({ agentId, sessionId }: { agentId: string; sessionId?: string | undefined }): string {
  return JSON.stringify([agentId, sessionId ?? null]);
}
