import type { InsightRow } from '@/lib/event-log/batch-rows';
import { isOfHook } from '@/lib/protocol/signals';
import type { FailureTally, SessionBatch } from './session-batch';

export const NO_FAILURES: FailureTally = { all: 0, other: 0 };

/** By the session they name, failures nobody has seen; those that name none are under null. */
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
 * What is left of a session's marks where everything up to a position has been seen: none, where nothing that marked it
 * came later. Else what is unseen of its own and around all sessions, which may have come before it began or while it was
 * done: its marks never grow by that.
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

/** By agent: failures that name no session. Each is counted once, in each of the agent's sessions at the end. */
export class FailuresAround {
  readonly #tallies = new Map<string, FailureTally & { last: number }>();

  note(row: InsightRow): void {
    const tally = sumOf(this.#of(row.agentId), tallyOf(row));
    this.#tallies.set(row.agentId, { ...tally, last: row.position });
  }

  /** What a session counts from that begins now: what failed before it began did not fail around it. */
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
  return { all: 1, other: Number(!isOfHook(row)) };
}
