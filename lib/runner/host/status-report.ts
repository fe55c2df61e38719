import type { AgentStatus } from '@interlude/protocol/agent-status';
import { COMMAND_TYPES } from '@interlude/protocol/commands';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { PROTOCOL_VERSION } from '@interlude/protocol/version';
import type { OutgoingRecord } from '../outbox/outbox';
import { RUNNER_VERSION } from './own-program.mjs';
import { type CommandHandlers, HANDLER_NAMES, type SessionFacts, type Source } from './source';

export type StatusRecord = Extract<OutgoingRecord, { kind: 'status' }>;

/** Session part of a status record. */
export interface SessionStatus {
  facts: SessionFacts;
  open: OpenWork;
  /** Last self-report of the agent. */
  report?: AgentStatus['report'];
  /** Its activity when the agent became unreachable. */
  last?: Activity | undefined;
  /** CPU seconds of its processes; null if not sampled. */
  cpuSeconds?: number | null;
}

export type Activity = NonNullable<NonNullable<AgentStatus['unreachable']>['last']>;

export function activityOf({ turn, tasks, requests }: OpenWork): Activity | undefined {
  if (requests.length > 0) return 'needs-input';
  if (turn !== null) return 'working';
  return tasks.length > 0 ? 'waiting-on-background' : undefined;
}

/** @param session absent for a record about the agent alone */
export function statusRecord(
  agentId: string,
  about: AgentStatus,
  occurredAt: number,
  session?: SessionStatus,
): StatusRecord {
  if (session === undefined) return { kind: 'status', agentId, occurredAt, status: { ...about, versions: versions() } };
  const { sessionId, provider, attachments, ...facts } = session.facts;
  const { turn, tasks, requests } = session.open;
  const { unreachable } = about;
  const open = {
    openTurnId: turn?.runId ?? null,
    // Nothing is known about the tasks of an unreachable agent.
    tasks: unreachable === undefined ? tasks.map(({ id, description }) => ({ id, description })) : [],
    requests: [...requests],
  };
  const { report, last, cpuSeconds = null } = session;
  const reported = {
    ...(report === undefined ? {} : { report }),
    ...(unreachable && last !== undefined ? { unreachable: { ...unreachable, last } } : {}),
    ...(cpuSeconds === null ? {} : { cpuSeconds }),
  };
  const supported = attachments === null ? {} : { attachments: [...attachments] };
  const status: AgentStatus = { ...about, versions: versions(provider), ...facts, ...supported, ...open, ...reported };
  return { kind: 'status', agentId, sessionId, occurredAt, status };
}

/** Commands that the source supports. Listed even if all are, since older runners list none. */
export function supportedCommands(source: Pick<Source, keyof CommandHandlers | 'refusals'>): AgentStatus {
  const supported = COMMAND_TYPES.filter(
    (type) => type === 'log-level.set' || source[HANDLER_NAMES[type]] !== undefined,
  );
  return { takes: supported, ...(source.refusals === undefined ? {} : { takesNot: source.refusals }) };
}

function versions(provider: string | null = null) {
  return { runner: RUNNER_VERSION, protocol: PROTOCOL_VERSION, ...(provider === null ? {} : { provider }) };
}

interface StatusReporterOptions {
  report: () => Promise<void>;
  everyMs?: number;
  soonMs?: number;
}

/** Part of each report, so that the server can detect a missing one. */
export const REPORT_EVERY_MS = 10_000;
/** Delay that batches changes. */
const SOON_MS = 100;

/**
 * Reports status every ten seconds, and soon after a change.
 *
 * Ordering: one report at a time; a change during a report is part of the next.
 * Failure: continues while the server is away. In the outbox each report replaces the previous one.
 */
export class StatusReporter {
  readonly #options: StatusReporterOptions;
  #every: NodeJS.Timeout | null = null;
  #soon: NodeJS.Timeout | null = null;
  #reporting: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;
  #stopped = false;

  constructor(options: StatusReporterOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    await this.now();
    this.#every = setInterval(() => void this.now(), this.#options.everyMs ?? REPORT_EVERY_MS);
  }

  changed(): void {
    if (this.#soon !== null || this.#stopped) return;
    this.#soon = setTimeout(() => {
      this.#soon = null;
      void this.now();
    }, this.#options.soonMs ?? SOON_MS);
  }

  /** Reports now; calls during a report share the next one. */
  now(): Promise<void> {
    this.#next ??= this.#reporting.then(() => {
      this.#next = null;
      this.#reporting = this.#options.report().catch(() => undefined);
      return this.#reporting;
    });
    return this.#next;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#every) clearInterval(this.#every);
    if (this.#soon) clearTimeout(this.#soon);
    await this.now();
  }
}

/**
 * Interval at which all sessions are reported; the server updates readers about unchanged agents at the same interval.
 */
const ALL_EVERY_MS = 60_000;
/** A longer gap means a lost report, so earlier ones may not have arrived. */
const GAP_MS = 15_000;

/**
 * Selects the sessions to include in a report. The server stores the newest status of an agent and ignores repeats, so
 * alternating between two idle sessions would look like a change each time.
 */
export class ReportSelector {
  #reported = new Map<string | undefined, string>();
  /** The session reported last, whose status the server has. */
  #newest: string | undefined;
  #allAt = Number.NEGATIVE_INFINITY;
  #pickedAt = Number.NEGATIVE_INFINITY;

  /** Makes the next report include all sessions, because the server may have missed some. */
  forget(): void {
    this.#allAt = Number.NEGATIVE_INFINITY;
  }

  /**
   * @param sessions one status record per session
   * @param now monotonic milliseconds
   * @returns active and changed sessions; without any, the session reported last, as a heartbeat
   */
  pick(sessions: readonly StatusRecord[], now: number): StatusRecord[] {
    const isForAll = now - this.#allAt >= ALL_EVERY_MS || now - this.#pickedAt > GAP_MS;
    this.#pickedAt = now;
    if (isForAll) this.#allAt = now;
    const isChanged = (record: StatusRecord) =>
      isActive(record) || this.#reported.get(record.sessionId) !== statusText(record);
    const changed = sessions.filter((record) => isForAll || isChanged(record));
    const picked = changed.length > 0 ? changed : this.#heartbeat(sessions);
    this.#reported = new Map(sessions.map((record) => [record.sessionId, statusText(record)]));
    this.#newest = picked.at(-1)?.sessionId;
    return picked;
  }

  #heartbeat(sessions: readonly StatusRecord[]): StatusRecord[] {
    const newest = sessions.find(({ sessionId }) => sessionId === this.#newest) ?? sessions.at(-1);
    return newest === undefined ? [] : [newest];
  }
}

function statusText({ status }: StatusRecord): string {
  return JSON.stringify(status);
}

/** True for sessions for which the server expects heartbeats. */
function isActive({ status: { openTurnId, tasks, requests } }: StatusRecord): boolean {
  const isAny = (list: unknown) => Array.isArray(list) && list.length > 0;
  return typeof openTurnId === 'string' || isAny(tasks) || isAny(requests);
}
