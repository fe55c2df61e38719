import { fieldsOf } from '@interlude/protocol/fields';
import type { InStatement, Row } from '@libsql/client';
import { type Candidate, candidateOf, LARGEST_RECORD_BYTES } from './append-plan';
import { type NewRow, updateStatement } from './statements';

/**
 * The status records that wait: one for each agent and session, since each outdates the one before it. A newer one takes
 * the number of what it outdates instead of one more, so an outage leaves one of each, as new as its last report.
 *
 * Ordering: the newest report of all stands behind the others: as one is outdated, those behind it move up by a place,
 * each keeping what it says.
 * Failure: what a request carries just now keeps its content; what outdates it is held back in memory until it is known
 * what became of that request, and then says nothing of the moment if events of its session have been stored since. What an
 * earlier one carried, whose answer was lost, may be replaced and the server have it all the same: where the answer speaks of
 * duplicates, what replaced it is sent once more, under a number of its own.
 */
export class WaitingStatuses {
  /** By agent and session, in the order of their numbers. */
  #waiting = new Map<string, WaitingStatus>();
  #heldBack = new Map<string, Candidate>();
  /** A request carries everything up to here just now. */
  #underWaySeq = 0;
  /** Everything up to here some request has carried. */
  #carriedSeq: number;

  /**
   * @param rows of READ_STATUSES
   * @param carriedSeq what an earlier process may have sent
   */
  constructor(rows: readonly Row[] = [], carriedSeq = 0) {
    for (const { seq, bytes, body } of rows) {
      const text = String(body);
      const key = statusKey(JSON.parse(text));
      // it may have said something else when that process sent it
      const isRewritten = Number(seq) <= carriedSeq;
      // of several only the newest waits to be outdated, at its own place in the order
      this.#waiting.delete(key);
      this.#waiting.set(key, { seq: Number(seq), bytes: Number(bytes), body: text, isRewritten });
    }
    this.#carriedSeq = carriedSeq;
  }

  /** How many wait beside those in the queue. */
  get heldBack(): number {
    return this.#heldBack.size;
  }

  underWay(upToSeq: number): void {
    this.#underWaySeq = upToSeq;
    this.#carriedSeq = Math.max(this.#carriedSeq, upToSeq);
  }

  /** It is known what became of the request. @returns what was held back for it */
  landed(): Candidate[] {
    this.#underWaySeq = 0;
    return [...this.#heldBack.values()];
  }

  /** Which records are put at the end of the queue, and what changes in it for those that outdate others. Changes nothing. */
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
      heldBack: new Map(),
    };
    for (const [key, candidate] of this.#heldBack) {
      if (overtaken.has(key) && !newest.has(key)) plan.heldBack.set(key, withoutTransientFields(candidate));
    }
    for (const [key, candidate] of newest) {
      const older = plan.waiting.get(key);
      if (older === undefined) continue;
      if (older.seq <= this.#underWaySeq) {
        plan.heldBack.set(key, overtaken.has(key) ? withoutTransientFields(candidate) : candidate);
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

  /** The plan was carried out; these were put at the end of the queue. */
  adopt(plan: StatusPlan, rows: readonly NewRow[]): void {
    this.#waiting = plan.waiting;
    for (const { kind, seq, bytes, body } of rows) {
      if (kind === 'status') this.#waiting.set(statusKey(JSON.parse(body)), { seq, bytes, body, isRewritten: false });
    }
    // what was held back is among what was planned, or outdated by it
    for (const key of plan.planned) this.#heldBack.delete(key);
    for (const [key, candidate] of plan.heldBack) this.#heldBack.set(key, candidate);
  }

  /**
   * These have left the queue: the server has them.
   * @param hadDuplicates whether it had some of them before, and kept what those said
   */
  acknowledged(upToSeq: number, hadDuplicates: boolean): void {
    for (const [key, { seq, body, isRewritten }] of this.#waiting) {
      if (seq > upToSeq) continue;
      this.#waiting.delete(key);
      if (hadDuplicates && isRewritten && !this.#heldBack.has(key)) {
        this.#heldBack.set(key, withoutTransientFields(candidateOf(body)));
      }
    }
  }

  /** The server will never take it. */
  drop(seq: number): void {
    for (const [key, status] of this.#waiting) if (status.seq === seq) this.#waiting.delete(key);
  }

  /** A new epoch has begun: all numbers are less by this, and none has been sent. */
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
  /** Some request may have carried what this row said before. */
  isRewritten: boolean;
}

export interface StatusPlan {
  /** Of which agents and sessions it stores a report, or holds it back. */
  planned: string[];
  added: Candidate[];
  /** By number: what a row in the queue says from now on. */
  changed: Map<number, Omit<WaitingStatus, 'isRewritten'>>;
  /** By how much the queue grows through that. */
  bytes: number;
  waiting: Map<string, WaitingStatus>;
  heldBack: Map<string, Candidate>;
}

export const READ_STATUSES = "SELECT seq, bytes, body FROM queue WHERE kind = 'status' ORDER BY seq";

export function statusStatements({ changed }: StatusPlan): InStatement[] {
  return [...changed.values()].map((row) => updateStatement({ kind: 'status', ...row }));
}

/** What it says of the moment that events behind it have passed by. */
const TRANSIENT_FIELDS = ['process', 'state', 'openTurnId', 'tasks', 'requests'];

function withoutTransientFields(candidate: Candidate): Candidate {
  const record = fieldsOf(JSON.parse(candidate.body));
  const status = Object.fromEntries(
    Object.entries(fieldsOf(record.status)).filter(([name]) => !TRANSIENT_FIELDS.includes(name)),
  );
  return candidateOf(JSON.stringify({ ...record, status }));
}

/** One that no request can hold outdates nothing: it is refused, and declared. */
function isStatus({ kind, bytes }: Candidate): boolean {
  return kind === 'status' && bytes <= LARGEST_RECORD_BYTES;
}

/** The rows from the outdated one on, with what they say once the new one is the last of them. */
function shiftedRows(
  waiting: ReadonlyMap<string, WaitingStatus>,
  key: string,
  { body, bytes }: Candidate,
): [string, Omit<WaitingStatus, 'isRewritten'>][] {
  const from = waiting.get(key)?.seq ?? 0;
  const rows = [...waiting].filter(([, { seq }]) => seq >= from);
  const seqs = rows.map(([, { seq }]) => seq);
  const says = rows.slice(1).map(([name, status]) => ({ name, body: status.body, bytes: status.bytes }));
  return [...says, { name: key, body, bytes }].map(({ name, ...said }, at) => [
    name,
    { ...said, seq: seqs[at] as number },
  ]);
}

function statusKey({ agentId, sessionId }: { agentId: string; sessionId?: string | undefined }): string {
  return JSON.stringify([agentId, sessionId ?? null]);
}
