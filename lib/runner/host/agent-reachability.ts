import { setTimeout as pause } from 'node:timers/promises';
import { CUSTOM, type TimedEvent } from '@interlude/protocol/ag-ui';
import type { AgentStatus } from '@interlude/protocol/agent-status';
import { formatDuration } from '@interlude/protocol/duration';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { Cursor } from '../outbox/statements';
import { type Activity, activityOf } from './status-report';

/**
 * Reports an agent that the runner did not start as unreachable, and closes what it was doing.
 *
 * Ordering: the outage is stored and reported before its source closes anything, so the server knows what was lost. Its
 * end is told in the sessions that lost something, and reported behind that.
 */
export interface AgentWatchOptions
  extends Pick<ReachabilityProbeOptions, 'ask' | 'say' | 'everyMs' | 'limitMs' | 'now'> {
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

type StoredOutage = Outage & { last: Record<string, Activity> };

/** The cursor under which an outage is stored. */
export const UNREACHABLE_CURSOR = 'unreachable';

export class AgentWatch {
  readonly #options: AgentWatchOptions;
  readonly #reach: ReachabilityProbe;
  #lost: StoredOutage | null;

  /** @param stored what the process before this one has left under UNREACHABLE */
  constructor(stored: string | null, options: AgentWatchOptions) {
    const { log, openWork, emit, close, report, ...terms } = options;
    this.#options = options;
    this.#lost = JSON.parse(stored ?? 'null') as StoredOutage | null;
    this.#reach = new ReachabilityProbe({
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
  activities(sessionId: string): Activity | undefined {
    return (this.#lost ?? this.#unsure)?.last[sessionId];
  }

  /** What the process before this one has left open, of an agent that has not answered this one. */
  get #unsure(): StoredOutage | null {
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

  async #set(lost: StoredOutage | null): Promise<void> {
    this.#lost = lost;
    await this.#options.store({ name: UNREACHABLE_CURSOR, value: lost === null ? null : JSON.stringify(lost) });
    await this.#options.report();
  }
}

function lastOf(openWork: ReadonlyMap<string, OpenWork>): StoredOutage['last'] {
  return Object.fromEntries(
    [...openWork].map(([sessionId, open]) => [sessionId, activityOf(open)]),
  ) as StoredOutage['last'];
}

/**
 * Liveness of an agent that the runner did not start: asks its source every few seconds whether the agent's address
 * answers, and counts it as unreachable once it has not for `limitMs`.
 *
 * Ordering: one question at a time; `onLost` and `onBack` alternate, each finished before the next question.
 * Failure: a shorter outage calls nothing. The outage a previous process ended in is continued: `before` is what it
 * stored, so a restart of the runner neither hides the outage nor reports it twice.
 */
interface ReachabilityProbeOptions {
  /** Why the address does not answer, as part of a sentence; null if it does, however slowly. */
  ask: () => Promise<string | null>;
  onLost: (outage: Outage) => Promise<void>;
  onBack: (outage: Outage) => Promise<void>;
  /** `unanswered` has changed, and the agent neither was nor is lost. */
  onUnsure?: () => Promise<void>;
  /** For the terminal, in a line: no answer at the start, an agent lost, an agent back. */
  say: (line: string) => void;
  before?: Outage | null;
  now?: () => number;
  everyMs?: number;
  limitMs?: number;
}

export interface Outage {
  /** When it was first asked in vain, epoch milliseconds. */
  since: number;
  reason: string;
}

const EVERY_MS = 5_000;
/** With EVERY_MS and the wait for a connection, an agent counts as unreachable within 30 s of its death. */
const LIMIT_MS = 18_000;
/** After the machine has slept, a single attempt says nothing. */
const LEAST_ATTEMPTS = 3;

export class ReachabilityProbe {
  readonly #options: ReachabilityProbeOptions;
  readonly #now: () => number;
  readonly #stopping = new AbortController();
  #failing: (Outage & { attempts: number }) | null = null;
  #outage: Outage | null;
  #isSaid = false;
  #hasAnswered = false;
  /** The `onLost` or `onBack` in progress: `stop` waits for it, and not for an unanswered question. */
  #telling: Promise<void> = Promise.resolve();

  constructor(options: ReachabilityProbeOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#outage = options.before ?? null;
  }

  /** Null while the agent counts as reachable. */
  get outage(): Outage | null {
    return this.#outage;
  }

  /** Set while each question since the start was asked in vain: it is not known whether the agent still lives. */
  get unanswered(): Outage | null {
    return this.#hasAnswered ? null : this.#failing;
  }

  start(): void {
    void this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#telling;
  }

  /** Asks once. */
  async look(): Promise<void> {
    const { ask, onLost, onBack, onUnsure = async () => {}, say, limitMs = LIMIT_MS } = this.#options;
    const askedAt = this.#now();
    const reason = await ask();
    if (this.#stopping.signal.aborted) return;
    const outage = this.#outage;
    if (reason === null) {
      const wasUnsure = this.unanswered !== null;
      this.#failing = null;
      this.#outage = null;
      this.#hasAnswered = true;
      if (this.#isSaid) say('the agent answers again');
      this.#isSaid = false;
      if (outage !== null) await this.#tell(onBack(outage));
      else if (wasUnsure) await this.#tell(onUnsure());
      return;
    }
    const wasUnsure = this.unanswered !== null;
    const { since, attempts } = this.#failing ?? { since: askedAt, attempts: 0 };
    this.#failing = { since, reason, attempts: attempts + 1 };
    if (!wasUnsure && this.unanswered !== null && outage === null) await this.#tell(onUnsure());
    const isLost = attempts + 1 >= LEAST_ATTEMPTS && this.#now() - since >= limitMs;
    if (!this.#isSaid && (isLost || !this.#hasAnswered)) {
      this.#isSaid = true;
      say(`${reason}; it is tried again by itself`);
    }
    if (!isLost || outage !== null) return;
    this.#outage = { since, reason };
    await this.#tell(onLost(this.#outage));
  }

  async #tell(telling: Promise<void>): Promise<void> {
    this.#telling = telling;
    await telling;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.look();
      await pause(this.#options.everyMs ?? EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
