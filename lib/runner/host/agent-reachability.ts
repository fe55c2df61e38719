import { setTimeout as pause } from 'node:timers/promises';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { AgentStatus } from '@interlude/protocol/agent-status';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { formatDuration } from '@interlude/protocol/time';
import type { Cursor } from '../outbox/statements';
import { type Activity, activityOf } from './status-report';

export interface AgentWatchOptions
  extends Pick<ReachabilityProbeOptions, 'reach' | 'print' | 'everyMs' | 'limitMs' | 'now'> {
  close: (reason: string) => Promise<void>;
  openWork: () => ReadonlyMap<string, OpenWork>;
  store: (cursor: Cursor) => Promise<void>;
  report: () => Promise<void>;
  emit: (sessionId: string, events: readonly TimedEvent[]) => void;
  log: (message: string) => void;
}

type StoredOutage = Outage & { last: Record<string, Activity> };

export const UNREACHABLE_CURSOR = 'unreachable';

/**
 * Reports an external agent as unreachable and closes its open work.
 *
 * Ordering: the outage is stored and reported before the source closes anything, so the server knows what was lost.
 * Recovery is first noted in the affected sessions, then reported.
 */
export class AgentWatch {
  readonly #options: AgentWatchOptions;
  readonly #reach: ReachabilityProbe;
  #lost: StoredOutage | null;

  /** @param stored value of UNREACHABLE_CURSOR */
  constructor(stored: string | null, options: AgentWatchOptions) {
    const { log, openWork, emit, close, report, ...terms } = options;
    this.#options = options;
    this.#lost = JSON.parse(stored ?? 'null') as StoredOutage | null;
    this.#reach = new ReachabilityProbe({
      ...terms,
      before: this.#lost,
      onLost: async (outage) => {
        log(`unreachable: ${outage.reason}`);
        await this.#set({ ...outage, last: activities(openWork()) });
        await close(outage.reason).catch((error: Error) => log(`could not close open work: ${error.message}`));
      },
      onBack: async ({ since }) => {
        const now = Date.now();
        const text = `The agent is reachable again after ${formatDuration(now - since)}.`;
        log(text);
        const event = { type: 'CUSTOM', name: CUSTOM.notice, value: { text, tone: 'info' } };
        for (const sessionId of Object.keys(this.#lost?.last ?? {})) emit(sessionId, [{ occurredAt: now, event }]);
        await this.#set(null);
      },
      onUnsure: report,
    });
  }

  get unreachable(): NonNullable<AgentStatus['unreachable']> | undefined {
    const lost = this.#lost ?? this.#unsure;
    if (lost === null) return undefined;
    const { since, reason, last } = lost;
    return { since, reason, wasAtWork: Object.keys(last).length > 0 };
  }

  /** Activity of a session when the agent was lost. */
  lastActivityOf(sessionId: string): Activity | undefined {
    return (this.#lost ?? this.#unsure)?.last[sessionId];
  }

  /** Work that the previous process left open, until the agent answers. */
  get #unsure(): StoredOutage | null {
    const { unanswered } = this.#reach;
    const last = activities(this.#options.openWork());
    if (unanswered === null || Object.keys(last).length === 0) return null;
    return { since: unanswered.since, reason: unanswered.reason, last };
  }

  start(): void {
    this.#reach.start();
  }

  probe(): Promise<void> {
    return this.#reach.probe();
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

function activities(openWork: ReadonlyMap<string, OpenWork>): StoredOutage['last'] {
  return Object.fromEntries(
    [...openWork].map(([sessionId, open]) => [sessionId, activityOf(open)]),
  ) as StoredOutage['last'];
}

interface ReachabilityProbeOptions {
  /** Reason why the address does not respond, as part of a sentence; null if it responds, however slowly. */
  reach: () => Promise<string | null>;
  onLost: (outage: Outage) => Promise<void>;
  onBack: (outage: Outage) => Promise<void>;
  /** Called when `unanswered` changes while the agent is not lost. */
  onUnsure?: () => Promise<void>;
  /** Prints one line to the terminal: no answer at startup, agent lost, agent back. */
  print: (line: string) => void;
  before?: Outage | null;
  now?: () => number;
  everyMs?: number;
  limitMs?: number;
}

export interface Outage {
  /** Epoch milliseconds of the first failed probe. */
  since: number;
  reason: string;
}

const EVERY_MS = 5_000;
/** With EVERY_MS and the connect timeout, an agent counts as unreachable within 30 s of its death. */
const LIMIT_MS = 18_000;
/** A single failure, for example after sleep, proves nothing. */
const LEAST_ATTEMPTS = 3;

/**
 * Probes the address of an external agent every few seconds, and counts it as unreachable after `limitMs` without an
 * answer.
 *
 * Ordering: one probe at a time. `onLost` and `onBack` alternate, and each finishes before the next probe.
 * Failure: shorter outages are ignored. An outage of the previous process continues from `before`, so a restart neither
 * hides nor repeats it.
 */
export class ReachabilityProbe {
  readonly #options: ReachabilityProbeOptions;
  readonly #now: () => number;
  readonly #stopping = new AbortController();
  #failing: (Outage & { attempts: number }) | null = null;
  #outage: Outage | null;
  #isAnnounced = false;
  #hasAnswered = false;
  /** The running callback. `stop` waits for it, but not for a pending probe. */
  #notifying: Promise<void> = Promise.resolve();

  constructor(options: ReachabilityProbeOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#outage = options.before ?? null;
  }

  get outage(): Outage | null {
    return this.#outage;
  }

  /** Set while every probe since startup has failed. */
  get unanswered(): Outage | null {
    return this.#hasAnswered ? null : this.#failing;
  }

  start(): void {
    void this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#notifying;
  }

  async probe(): Promise<void> {
    const { reach, onLost, onBack, onUnsure = async () => {}, print, limitMs = LIMIT_MS } = this.#options;
    const probedAt = this.#now();
    const reason = await reach();
    if (this.#stopping.signal.aborted) return;
    const outage = this.#outage;
    if (reason === null) {
      const wasUnsure = this.unanswered !== null;
      this.#failing = null;
      this.#outage = null;
      this.#hasAnswered = true;
      if (this.#isAnnounced) print('the agent is reachable again');
      this.#isAnnounced = false;
      if (outage !== null) await this.#notify(onBack(outage));
      else if (wasUnsure) await this.#notify(onUnsure());
      return;
    }
    const wasUnsure = this.unanswered !== null;
    const { since, attempts } = this.#failing ?? { since: probedAt, attempts: 0 };
    this.#failing = { since, reason, attempts: attempts + 1 };
    if (!wasUnsure && this.unanswered !== null && outage === null) await this.#notify(onUnsure());
    const isLost = attempts + 1 >= LEAST_ATTEMPTS && this.#now() - since >= limitMs;
    if (!this.#isAnnounced && (isLost || !this.#hasAnswered)) {
      this.#isAnnounced = true;
      print(`${reason}; retrying`);
    }
    if (!isLost || outage !== null) return;
    this.#outage = { since, reason };
    await this.#notify(onLost(this.#outage));
  }

  async #notify(notifying: Promise<void>): Promise<void> {
    this.#notifying = notifying;
    await notifying;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.probe();
      await pause(this.#options.everyMs ?? EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
