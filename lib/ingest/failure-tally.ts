import type { InsightRow } from '@/lib/event-log/batch-rows';
import { isOfHook } from '@/lib/protocol/signals';
import type { SessionBatch } from './project-session';

/** How many failures a batch tells of, and how many of them are not hooks that died. */
export interface FailureTally {
  all: number;
  other: number;
}

export const NO_FAILURES: FailureTally = { all: 0, other: 0 };

export function withFailure({ all, other }: FailureTally, row: InsightRow): FailureTally {
  return { all: all + 1, other: other + Number(!isOfHook(row)) };
}

/** By agent: failures that name no session. Each is counted once, in each of the agent's sessions at the end. */
export class FailuresAround {
  readonly #tallies = new Map<string, FailureTally>();

  note(row: InsightRow): void {
    this.#tallies.set(row.agentId, withFailure(this.#tallies.get(row.agentId) ?? NO_FAILURES, row));
  }

  /** What a session counts from that begins now: what failed before it began did not fail around it. */
  before(agentId: string): FailureTally {
    const { all, other } = this.#tallies.get(agentId) ?? NO_FAILURES;
    return { all: -all, other: -other };
  }

  markIn(sessionsOf: (agentId: string) => Iterable<SessionBatch>): void {
    for (const [agentId, { all, other }] of this.#tallies) {
      for (const session of sessionsOf(agentId)) {
        session.failures = { all: session.failures.all + all, other: session.failures.other + other };
      }
    }
  }
}
