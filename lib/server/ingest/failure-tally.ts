import { isHookSignal } from '@interlude/protocol/insight';
import type { InsightRow } from '@/lib/server/event-log/batch-rows';
import type { FailureTally, SessionBatch } from './session-batch';

export const NO_FAILURES: FailureTally = { all: 0, other: 0 };

/** Failures that nobody has seen, by the session they name; null for those that name none. */
export type UnseenFailures = ReadonlyMap<string | null, FailureTally>;

export function sumOf(...tallies: readonly FailureTally[]): FailureTally {
  return tallies.reduce((sum, { all, other }) => ({ all: sum.all + all, other: sum.other + other }), NO_FAILURES);
}

/** What a failure adds to a session. */
export function markWith(session: SessionBatch, row: InsightRow): void {
  session.failures = sumOf(session.failures, tallyOf(row));
  session.markedUpTo = row.position;
}

/**
 * Reduces a session's marks once everything up to a position has been seen: to none, if nothing that marked it came
 * later; else to its own unseen failures and those around all sessions. The latter may be from before it began or while
 * it was done, so its marks never grow by this.
 */
export function unmark(session: SessionBatch, upTo: number, unseen: UnseenFailures): void {
  if (session.before === null) return;
  const { insightCount, otherFailureCount } = session.before.summary;
  const marks = sumOf(session.failures, { all: insightCount, other: otherFailureCount });
  const around = sumOf(unseen.get(session.id) ?? NO_FAILURES, unseen.get(null) ?? NO_FAILURES);
  const left = upTo >= session.markedUpTo ? NO_FAILURES : around;
  session.failures = sumOf(session.failures, {
    all: Math.min(left.all, marks.all) - marks.all,
    other: Math.min(left.other, marks.other) - marks.other,
  });
}

/** Failures that name no session, by agent. At the end, each counts once in every session of its agent. */
export class FailuresAround {
  readonly #tallies = new Map<string, FailureTally & { last: number }>();

  note(row: InsightRow): void {
    const tally = sumOf(this.#of(row.agentId), tallyOf(row));
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
        session.failures = sumOf(session.failures, tally);
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
