import type { WakeRule } from '@interlude/protocol/commands';
import { isHookSignal } from '@interlude/protocol/insight';
import type { Position } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import type { ReportedStatus } from '@interlude/protocol/projections/reported-status';
import type { SnapshotPart } from '@interlude/protocol/projections/snapshot-parts';
import type { Arrangement, Obligation, Task } from '@interlude/protocol/read-models';
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

/** The sessions a batch touches: stored ones, and those that start with it. */
export class BatchSessions {
  readonly #state: BatchState;
  readonly #known = new Map<string, SessionBatch>();
  /** Sessions that start with this batch, by agent. */
  readonly #newSessions = new Map<string, Set<string>>();

  constructor(state: BatchState) {
    this.#state = state;
  }

  get size(): number {
    return this.#known.size;
  }

  values(): Iterable<SessionBatch> {
    return this.#known.values();
  }

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
   * Returns the session. If it had no owner, it belongs to `agentId` from now on.
   * @param at start time of a new session
   * @param failures initial tally of a new session
   */
  claim(id: string, agentId: string, at: number, failures: FailureTally): SessionBatch {
    return this.find(id) ?? this.#remember({ id, agentId, before: null, startedAt: at, ...emptyBatch(), failures });
  }

  hasOthers(agentId: string, sessionId: string): boolean {
    const stored = this.#state.agents.get(agentId)?.sessionCount ?? 0;
    const newSessions = this.#newSessions.get(agentId);
    const own = Number(this.#state.sessions.has(sessionId)) + Number(newSessions?.has(sessionId) === true);
    return stored + (newSessions?.size ?? 0) > own;
  }

  /** The agent's sessions whose process has not ended. */
  openOf(agentId: string): SessionBatch[] {
    return this.#of(agentId, this.#state.sessions.keys()).filter(({ before }) => before?.hasEnded !== true);
  }

  /**
   * Sessions that a loss without a session may concern: the agent's sessions to which this outbox has written. An
   * outbox that has written to none replaces an unreadable one, so the loss may concern all sessions that have not
   * ended.
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

  #remember(batch: Omit<SessionBatch, 'requests'>): SessionBatch {
    const { memory, places = null } = batch.before ?? {};
    const requests = new DerivedRequests(memory?.wireRequests as RequestMemory | undefined, places, memory?.givenUp);
    const session = { ...batch, requests };
    this.#known.set(session.id, session);
    if (session.before === null) {
      const newSessions = this.#newSessions.get(session.agentId) ?? new Set();
      this.#newSessions.set(session.agentId, newSessions.add(session.id));
    }
    return session;
  }
}

/** `other` counts the failures that are not crashed hooks. */
export interface FailureTally {
  all: number;
  other: number;
}

export interface SessionEntry {
  entry: EventEntry;
  row: EventRow;
  /** Parts of a snapshot. The entry reserves as many positions after its own for the new parts. */
  parts: readonly SnapshotPart[];
}

export interface SessionBatch {
  id: string;
  agentId: string;
  /** Null before the session's first row. */
  before: SessionChange | null;
  startedAt: number;
  /** Events of this batch in position order, each with its row. */
  entries: SessionEntry[];
  requests: DerivedRequests;
  /** Failures in this batch that mark the session. */
  failures: FailureTally;
  /** Change in the number of the session's quarantined records. */
  quarantined: number;
  /** Position of the newest failure that ever marked the session. */
  markedUpTo: number;
  /** States that status records reported, each with the value of the counter at that record. */
  statuses: { position: number; status: ReportedStatus; occurredAt: number }[];
  /** State and lists of the last status record; null if even an equal record may report a change. */
  statusKey: string | null;
  listsKey: string | null;
  /** Source of the process's end in the log; null without an end, or if the process has returned. */
  end: NonNullable<SessionMemory['end']> | null;
  /** True if the agent itself sent anything about the session, even just a heartbeat. */
  isActive: boolean;
  /** True if time may have changed the state. */
  isStateDue: boolean;
  /** The 99th percentile of this kind of agent's silences; null if not computed. */
  usualSilenceMs: number | null;
  /** Ids of messages whose reply has become overdue. */
  overdue: string[];
  /** Positions of tasks whose results were not delivered in time. */
  undelivered: Position[];
  /** New arrangement that a person set; null for no change. */
  arrangement: Arrangement | null;
  /** The new wake rule; null for no change. */
  wakeRule: { when: WakeRule | null } | null;
}

/** The stored rows of a session that its new events may touch. */
export interface Stored {
  tasks: readonly Task[];
  obligations: readonly Obligation[];
  parts: readonly PartRow[];
  /** The runner's own id for the session, if it differs. */
  alias: string | null;
  /** The counter before the batch. Rows up to this position are in the database. */
  position: number;
}

export const NO_FAILURES: FailureTally = { all: 0, other: 0 };

/** Unseen failures by the session that they name; null for failures without a session. */
export type UnseenFailures = ReadonlyMap<string | null, FailureTally>;

function addTallies(...tallies: readonly FailureTally[]): FailureTally {
  return tallies.reduce((sum, { all, other }) => ({ all: sum.all + all, other: sum.other + other }), NO_FAILURES);
}

export function addFailure(session: SessionBatch, row: InsightRow): void {
  session.failures = addTallies(session.failures, tallyOf(row));
  session.markedUpTo = row.position;
}

/**
 * Lowers a session's marks once everything up to a position has been seen: to zero if no newer failure marked it, else
 * to its unseen failures plus those without a session. The latter may predate the session, so the marks never grow
 * here.
 */
export function removeSeenFailures(session: SessionBatch, upTo: number, unseen: UnseenFailures): void {
  if (session.before === null) return;
  const { insightCount, otherFailureCount } = session.before.summary;
  const marks = addTallies(session.failures, { all: insightCount, other: otherFailureCount });
  const unseenHere = addTallies(unseen.get(session.id) ?? NO_FAILURES, unseen.get(null) ?? NO_FAILURES);
  const left = upTo >= session.markedUpTo ? NO_FAILURES : unseenHere;
  session.failures = addTallies(session.failures, {
    all: Math.min(left.all, marks.all) - marks.all,
    other: Math.min(left.other, marks.other) - marks.other,
  });
}

/** Failures that name no session, by agent. In the end, each marks every open session of its agent once. */
export class UnassignedFailures {
  readonly #tallies = new Map<string, FailureTally & { last: number }>();

  note(row: InsightRow): void {
    const tally = addTallies(this.#of(row.agentId), tallyOf(row));
    this.#tallies.set(row.agentId, { ...tally, last: row.position });
  }

  /** The initial tally of a new session, which cancels failures from before the session started. */
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
  return { all: 1, other: Number(!isHookSignal(row)) };
}
