import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { type OpenCall, OpenSession } from '@interlude/protocol/lifecycle/open-session';

/**
 * The tool calls under way in each session, from the events on their way out. They prove which session makes a
 * call where one process serves many sessions.
 *
 * Failure: kept in memory only. A runner that starts in the middle of a call does not know it, and the call is refused.
 */
export class RunningCalls {
  readonly #bySession = new Map<string, OpenSession>();
  readonly #waiting = new Set<() => void>();

  in(sessionId: string): OpenCall[] {
    return this.#bySession.get(sessionId)?.calls ?? [];
  }

  saw(sessionId: string, events: readonly TimedEvent[]): void {
    const session = this.#bySession.get(sessionId) ?? new OpenSession();
    for (const { event } of events) session.take(event);
    if (session.calls.length > 0) this.#bySession.set(sessionId, session);
    else this.#bySession.delete(sessionId);
    for (const look of [...this.#waiting]) look();
  }

  /** Calls `find` now and after each event, until it gives something or the time is over. */
  async until<T>(find: () => T | null, withinMs: number): Promise<T | null> {
    const first = find();
    if (first !== null) return first;
    return await new Promise((resolve) => {
      const look = () => {
        const found = find();
        if (found !== null) end(found);
      };
      const end = (found: T | null) => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => end(null), withinMs);
      this.#waiting.add(look);
    });
  }
}
