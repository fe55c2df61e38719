import type { OutboxNotice } from '../outbox/delivery';

/** A runner that follows existing sessions gets this long to find one of its own. */
const OWNS_NOTHING_MS = 15_000;

type Rejected = Extract<OutboxNotice, { kind: 'quarantined' }>['rejected'];

/** Tracks sessions that belong to another agent: the server rejects their records. */
export class SessionOwnership {
  readonly #foreign = new Set<string>();
  #ownsNothingSince: number | null = null;

  isForeign(sessionId: string): boolean {
    return this.#foreign.has(sessionId);
  }

  /**
   * @param only the session of a single-session runner
   * @returns why the runner can't continue, or null
   */
  rejected(rejected: Rejected, only: string | null): string | null {
    for (const { code, sessionId } of rejected) {
      if (code === 'session_of_another_agent' && sessionId !== undefined) this.#foreign.add(sessionId);
    }
    if (only === null || !this.#foreign.has(only)) return null;
    return `session ${only} belongs to another agent; choose another with --session, or name its agent with --agent`;
  }

  /** @returns why the runner can't continue, or null @param now monotonic milliseconds */
  checked(sessions: number, foreign: number, now: number): string | null {
    const ownsNothing = foreign > 0 && foreign === sessions;
    this.#ownsNothingSince = ownsNothing ? (this.#ownsNothingSince ?? now) : null;
    if (this.#ownsNothingSince === null || now - this.#ownsNothingSince < OWNS_NOTHING_MS) return null;
    return 'all of its sessions belong to other agents; stop their runner first, or name its agent with --agent';
  }
}
