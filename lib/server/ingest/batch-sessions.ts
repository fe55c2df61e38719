import type { WakeRule } from '@interlude/protocol/commands';
import type { Position } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import type { SnapshotPart } from '@interlude/protocol/projections/snapshot-parts';
import type { StatusTold } from '@interlude/protocol/projections/status-told';
import type { Arrangement, Obligation, Task } from '@interlude/protocol/read-models';
import { isOfHook } from '@interlude/protocol/signals';
import type { EventRow, InsightRow, SessionChange, SessionMemory } from '@/lib/server/event-log/batch-rows';
import type { BatchState, PartRow } from '@/lib/server/event-log/read-batch-state';
import { DerivedRequests, type RequestMemory } from './derived-requests';

function emptyBatch(): Omit<SessionBatch, 'id' | 'agentId' | 'before' | 'startedAt' | 'requests'> {
  return {
    failures: NO_FAILURES,
    quarantined: 0,
    markedUpTo: 0,
    isActive: false,
    isStateDue: false,
    usualSilenceMs: null,
    arrangement: null,
    wakeRule: null,
    entries: [],
    statuses: [],
    statusKey: null,
    listsKey: null,
    end: null,
    overdue: [],
    undelivered: [],
  };
}

/** The sessions that a batch writes to or speaks of: stored ones, and those that begin with it. */
export class BatchSessions {
  readonly #state: BatchState;
  readonly #known = new Map<string, SessionBatch>();
  /** Sessions that begin with this batch, by agent. */
  readonly #fresh = new Map<string, Set<string>>();

  constructor(state: BatchState) {
    this.#state = state;
  }

  /** How many the batch has spoken of so far. */
  get size(): number {
    return this.#known.size;
  }

  values(): Iterable<SessionBatch> {
    return this.#known.values();
  }

  /** The session, if anything was written to it, before or in this batch. */
  find(id: string): SessionBatch | null {
    const session = this.#known.get(id);
    if (session !== undefined) return session;
    const before = this.#state.sessions.get(id);
    if (before === undefined) return null;
    const { agentId, startedAt } = before.summary;
    const { markedUpTo = 0, statusKey = null, listsKey = null, end = before.hasEnded ? 'told' : null } = before.memory;
    const known = { statusKey, listsKey, end, markedUpTo };
    return this.#remember({ id, agentId, before, startedAt, ...emptyBatch(), ...known });
  }

  /**
   * The session, which belongs to `agentId` from now on if it belonged to no agent.
   * @param at when it began, if it begins now
   * @param failures what it counts from, if it begins now
   */
  claim(id: string, agentId: string, at: number, failures: FailureTally): SessionBatch {
    return this.find(id) ?? this.#remember({ id, agentId, before: null, startedAt: at, ...emptyBatch(), failures });
  }

  /** Whether the agent has any session but this one. */
  hasOthers(agentId: string, sessionId: string): boolean {
    const stored = this.#state.agents.get(agentId)?.sessionCount ?? 0;
    const fresh = this.#fresh.get(agentId);
    const own = Number(this.#state.sessions.has(sessionId)) + Number(fresh?.has(sessionId) === true);
    return stored + (fresh?.size ?? 0) > own;
  }

  /** The agent's sessions whose process has not ended. */
  openOf(agentId: string): SessionBatch[] {
    return this.#of(agentId, this.#state.sessions.keys()).filter(({ before }) => before?.hasEnded !== true);
  }

  /**
   * Where a loss that names no session may have been: in every session this outbox has written to for the agent. An
   * outbox that has written to none replaces one that could no longer be read: then in every session that has not ended.
   */
  writtenFor(agentId: string): SessionBatch[] {
    const own = this.#of(agentId, this.#state.producerSessionIds);
    return own.length > 0 ? own : this.openOf(agentId);
  }

  #of(agentId: string, stored: Iterable<string>): SessionBatch[] {
    return [...new Set([...stored, ...this.#known.keys()])]
      .map((id) => this.find(id))
      .filter((session): session is SessionBatch => session?.agentId === agentId);
  }

  #remember(told: Omit<SessionBatch, 'requests'>): SessionBatch {
    const { memory, places = null } = told.before ?? {};
    const requests = new DerivedRequests(memory?.wireRequests as RequestMemory | undefined, places, memory?.givenUp);
    const session = { ...told, requests };
    this.#known.set(session.id, session);
    if (session.before === null) {
      const fresh = this.#fresh.get(session.agentId) ?? new Set();
      this.#fresh.set(session.agentId, fresh.add(session.id));
    }
    return session;
  }
}

/** How many failures there are, and how many of them are not hooks that died. */
export interface FailureTally {
  all: number;
  other: number;
}

export interface SessionEntry {
  entry: EventEntry;
  row: EventRow;
  /** Its parts, if it is a snapshot. As many positions after its own are reserved for the parts that are news. */
  parts: readonly SnapshotPart[];
}

export interface SessionBatch {
  id: string;
  agentId: string;
  /** Null before its first row. */
  before: SessionChange | null;
  startedAt: number;
  /** Its events of this batch in position order, each with the row it becomes. */
  entries: SessionEntry[];
  /** Requests that its agent opened, and those that follow from its other events. */
  requests: DerivedRequests;
  /** Failures around it in this batch. */
  failures: FailureTally;
  /** How many more of its records are in quarantine after this batch, those that were settled or removed taken off. */
  quarantined: number;
  /** The position of the newest failure that ever marked it. */
  markedUpTo: number;
  /** Its states according to status records, each with the counter when the record came. */
  statuses: { position: number; status: StatusTold }[];
  /** State and lists of the last status record; null if the same record may be news by now. */
  statusKey: string | null;
  listsKey: string | null;
  /** How its log has the end of its process; null if it has none, or the process is back. */
  end: NonNullable<SessionMemory['end']> | null;
  /** The agent itself said something about it in this batch, if only that it is still there. */
  isActive: boolean;
  /** Time may have changed its state. */
  isStateDue: boolean;
  /** The 99th percentile of its kind's silences; null where it was not computed. */
  usualSilenceMs: number | null;
  /** Messages to which a reply is owed for too long by now. */
  overdue: string[];
  /** Positions of the tasks whose results were not delivered in time. */
  undelivered: Position[];
  /** What a person makes of it now; null if nothing changes. */
  arrangement: Arrangement | null;
  /** When its agent is to be woken from now on; null if nothing changes. */
  wakeRule: { when: WakeRule | null } | null;
}

/** What is stored about a session that its new events may touch. */
export interface Stored {
  tasks: readonly Task[];
  obligations: readonly Obligation[];
  said: readonly PartRow[];
  /** The id by which its runner knows it, where that is another. */
  alias: string | null;
  /** The counter before the batch: rows up to it are in the database. */
  position: number;
}

export const NO_FAILURES: FailureTally = { all: 0, other: 0 };

/** Failures that nobody has seen, by the session they name; null for those that name none. */
export type UnseenFailures = ReadonlyMap<string | null, FailureTally>;

function addTallies(...tallies: readonly FailureTally[]): FailureTally {
  return tallies.reduce((sum, { all, other }) => ({ all: sum.all + all, other: sum.other + other }), NO_FAILURES);
}

/** What a failure adds to a session. */
export function addFailure(session: SessionBatch, row: InsightRow): void {
  session.failures = addTallies(session.failures, tallyOf(row));
  session.markedUpTo = row.position;
}

/**
 * Reduces a session's marks once everything up to a position has been seen: to none, if nothing that marked it came
 * later; else to its own unseen failures and those around all sessions. The latter may be from before it began or while
 * it was done, so its marks never grow by this.
 */
export function removeSeenFailures(session: SessionBatch, upTo: number, unseen: UnseenFailures): void {
  if (session.before === null) return;
  const { insightCount, otherFailureCount } = session.before.summary;
  const marks = addTallies(session.failures, { all: insightCount, other: otherFailureCount });
  const around = addTallies(unseen.get(session.id) ?? NO_FAILURES, unseen.get(null) ?? NO_FAILURES);
  const left = upTo >= session.markedUpTo ? NO_FAILURES : around;
  session.failures = addTallies(session.failures, {
    all: Math.min(left.all, marks.all) - marks.all,
    other: Math.min(left.other, marks.other) - marks.other,
  });
}

/** Failures that name no session, by agent. At the end, each counts once in every session of its agent. */
export class UnassignedFailures {
  readonly #tallies = new Map<string, FailureTally & { last: number }>();

  note(row: InsightRow): void {
    const tally = addTallies(this.#of(row.agentId), tallyOf(row));
    this.#tallies.set(row.agentId, { ...tally, last: row.position });
  }

  /** The tally with which a new session begins: failures from before it began do not mark it. */
  before(agentId: string): FailureTally {
    const { all, other } = this.#of(agentId);
    return { all: -all, other: -other };
  }

  markIn(sessionsOf: (agentId: string) => Iterable<SessionBatch>): void {
    for (const [agentId, { last, ...tally }] of this.#tallies) {
      for (const session of sessionsOf(agentId)) {
        session.failures = addTallies(session.failures, tally);
        session.markedUpTo = Math.max(session.markedUpTo, last);
      }
    }
  }

  #of(agentId: string): FailureTally {
    return this.#tallies.get(agentId) ?? NO_FAILURES;
  }
}

function tallyOf(row: InsightRow): FailureTally {
  return { all: 1, other: Number(!isOfHook(row)) };
}
