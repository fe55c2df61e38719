import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { isNothing, NOTHING_OPEN, type OpenWork, workAfter } from '@interlude/protocol/lifecycle/open-session';
import type { OutboxNotice } from '../outbox/delivery';
import type { Cursor } from '../outbox/statements';

/** The part of an outbox that is needed to restore state after a restart. */
export interface CursorReader {
  cursors: (prefix: string) => Promise<Map<string, string>>;
}

const CURSOR = 'open-work:';

export function openWorkCursor(sessionId: string, open: OpenWork): Cursor {
  return { name: CURSOR + sessionId, value: isNothing(open) ? null : JSON.stringify(open) };
}

/**
 * Open turns, tasks and requests of each session, folded from its emitted events.
 *
 * Failure: the state is stored with the events that changed it, so a host that starts after a kill knows what was open.
 */
export class OpenWorkStore {
  /** Sessions with nothing open are absent. */
  #bySession = new Map<string, OpenWork>();

  get sessions(): ReadonlyMap<string, OpenWork> {
    return this.#bySession;
  }

  async restore(outbox: CursorReader): Promise<void> {
    const stored = [...(await outbox.cursors(CURSOR))];
    this.#bySession = new Map(
      stored.map(([name, value]) => [name.slice(CURSOR.length), JSON.parse(value) as OpenWork]),
    );
  }

  of(sessionId: string): OpenWork {
    return this.#bySession.get(sessionId) ?? NOTHING_OPEN;
  }

  /** @returns the cursor to store with the events; null if they changed nothing */
  apply(sessionId: string, events: readonly TimedEvent[]): Cursor | null {
    const before = this.of(sessionId);
    const open = workAfter(before, events);
    if (open === before) return null;
    if (isNothing(open)) this.#bySession.delete(sessionId);
    else this.#bySession.set(sessionId, open);
    return openWorkCursor(sessionId, open);
  }
}

/** Time within which a runner that follows existing sessions must find one that it owns. */
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
   * @returns the reason why the runner can't continue, or null
   */
  rejected(rejected: Rejected, only: string | null): string | null {
    for (const { code, sessionId } of rejected) {
      if (code === 'session_of_another_agent' && sessionId !== undefined) this.#foreign.add(sessionId);
    }
    if (only === null || !this.#foreign.has(only)) return null;
    return `session ${only} belongs to another agent; choose another with --session, or name its agent with --agent`;
  }

  /** @returns the reason why the runner can't continue, or null @param now monotonic milliseconds */
  checked(sessions: number, foreign: number, now: number): string | null {
    const ownsNothing = foreign > 0 && foreign === sessions;
    this.#ownsNothingSince = ownsNothing ? (this.#ownsNothingSince ?? now) : null;
    if (this.#ownsNothingSince === null || now - this.#ownsNothingSince < OWNS_NOTHING_MS) return null;
    return 'all of its sessions belong to other agents; stop their runner first, or name its agent with --agent';
  }
}
