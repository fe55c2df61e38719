import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { AgentStatus } from '@interlude/protocol/agent-status';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { formatDuration } from '@interlude/protocol/time';
import type { Cursor } from '../outbox/statements';
import { type Outage, Reachability, type ReachabilityOptions } from './reachability';
import { type AtWork, atWork } from './status-record';

/**
 * Reports an agent that the runner did not start as unreachable, and closes what it was doing.
 *
 * Ordering: the outage is stored and reported before its source closes anything, so the server knows what was lost. Its
 * end is told in the sessions that lost something, and reported behind that.
 */
export interface AgentWatchOptions extends Pick<ReachabilityOptions, 'ask' | 'say' | 'everyMs' | 'limitMs' | 'now'> {
  /** Closes what is open. */
  close: (reason: string) => Promise<void>;
  /** By session; a session with nothing open is missing. */
  openWork: () => ReadonlyMap<string, OpenWork>;
  store: (cursor: Cursor) => Promise<void>;
  /** Sends the status of every session. */
  report: () => Promise<void>;
  emit: (sessionId: string, events: readonly TimedEvent[]) => void;
  log: (message: string) => void;
}

type Lost = Outage & { last: Record<string, AtWork> };

/** The cursor under which an outage is stored. */
export const UNREACHABLE = 'unreachable';

export class AgentWatch {
  readonly #options: AgentWatchOptions;
  readonly #reach: Reachability;
  #lost: Lost | null;

  /** @param stored what the process before this one has left under UNREACHABLE */
  constructor(stored: string | null, options: AgentWatchOptions) {
    const { log, openWork, emit, close, report, ...terms } = options;
    this.#options = options;
    this.#lost = JSON.parse(stored ?? 'null') as Lost | null;
    this.#reach = new Reachability({
      ...terms,
      before: this.#lost,
      onLost: async (outage) => {
        log(`unreachable: ${outage.reason}`);
        await this.#set({ ...outage, last: lastOf(openWork()) });
        await close(outage.reason).catch((error: Error) => log(`what was open could not be closed: ${error.message}`));
      },
      onBack: async ({ since }) => {
        const now = Date.now();
        const text = `The agent answers again, after ${formatDuration(now - since)}.`;
        log(text);
        const event = { type: 'CUSTOM', name: CUSTOM.notice, value: { text, tone: 'info' } };
        for (const sessionId of Object.keys(this.#lost?.last ?? {})) emit(sessionId, [{ occurredAt: now, event }]);
        await this.#set(null);
      },
      onUnsure: report,
    });
  }

  /** Of the agent, for its status record. */
  get unreachable(): NonNullable<AgentStatus['unreachable']> | undefined {
    const lost = this.#lost ?? this.#unsure;
    if (lost === null) return undefined;
    const { since, reason, last } = lost;
    return { since, reason, wasAtWork: Object.keys(last).length > 0 };
  }

  /** What a session was in the middle of when the agent was lost. */
  lastOf(sessionId: string): AtWork | undefined {
    return (this.#lost ?? this.#unsure)?.last[sessionId];
  }

  /** What the process before this one has left open, of an agent that has not answered this one. */
  get #unsure(): Lost | null {
    const { unanswered } = this.#reach;
    const last = lastOf(this.#options.openWork());
    if (unanswered === null || Object.keys(last).length === 0) return null;
    return { since: unanswered.since, reason: unanswered.reason, last };
  }

  start(): void {
    this.#reach.start();
  }

  /** Asks once. */
  look(): Promise<void> {
    return this.#reach.look();
  }

  async stop(): Promise<void> {
    await this.#reach.stop();
  }

  async #set(lost: Lost | null): Promise<void> {
    this.#lost = lost;
    await this.#options.store({ name: UNREACHABLE, value: lost === null ? null : JSON.stringify(lost) });
    await this.#options.report();
  }
}

function lastOf(openWork: ReadonlyMap<string, OpenWork>): Lost['last'] {
  return Object.fromEntries([...openWork].map(([sessionId, open]) => [sessionId, atWork(open)])) as Lost['last'];
}
