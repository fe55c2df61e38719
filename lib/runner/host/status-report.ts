import type { AgentStatus } from '@interlude/protocol/agent-status';
import { COMMAND_TYPES } from '@interlude/protocol/commands';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { PROTOCOL_VERSION } from '@interlude/protocol/version';
import type { OutgoingRecord } from '../outbox/outbox';
import { RUNNER_VERSION } from '../version';
import { type CommandHandlers, HANDLER_NAMES, type SessionFacts, type Source } from './source';

export type StatusRecord = Extract<OutgoingRecord, { kind: 'status' }>;

/** A session as described by a status record. */
export interface SessionStatus {
  facts: SessionFacts;
  open: OpenWork;
  /** What its agent last reported. */
  report?: AgentStatus['report'];
  /** What it was in the middle of when its agent was lost. */
  last?: Activity | undefined;
  /** Processor seconds of its processes; null while they are not sampled. */
  cpuSeconds?: number | null;
}

export type Activity = NonNullable<NonNullable<AgentStatus['unreachable']>['last']>;

/** What a session with this open is in the middle of. */
export function activityOf({ turn, tasks, requests }: OpenWork): Activity | undefined {
  if (requests.length > 0) return 'needs-input';
  if (turn !== null) return 'working';
  return tasks.length > 0 ? 'waiting-on-background' : undefined;
}

/** @param session missing if the record is about the agent alone */
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
    // An agent that can't be reached runs nothing that anybody could vouch for.
    tasks: unreachable === undefined ? tasks.map(({ id, description }) => ({ id, description })) : [],
    requests: [...requests],
  };
  const { report, last, cpuSeconds = null } = session;
  const reported = {
    ...(report === undefined ? {} : { report }),
    ...(unreachable && last !== undefined ? { unreachable: { ...unreachable, last } } : {}),
    ...(cpuSeconds === null ? {} : { cpuSeconds }),
  };
  const taken = attachments === null ? {} : { attachments: [...attachments] };
  const status: AgentStatus = { ...about, versions: versions(provider), ...facts, ...taken, ...open, ...reported };
  return { kind: 'status', agentId, sessionId, occurredAt, status };
}

/** Which commands a source acts on, as its runner reports it: all of them by name, since older runners name none. */
export function supportedCommands(source: Pick<Source, keyof CommandHandlers | 'refusals'>): AgentStatus {
  const takes = COMMAND_TYPES.filter((type) => type === 'log-level.set' || source[HANDLER_NAMES[type]] !== undefined);
  return { takes, ...(source.refusals === undefined ? {} : { takesNot: source.refusals }) };
}

/** Who speaks, what, and for whom. */
export function versions(provider: string | null = null) {
  return { runner: RUNNER_VERSION, protocol: PROTOCOL_VERSION, ...(provider === null ? {} : { provider }) };
}

/**
 * Sends the runner's status every ten seconds, and soon after a change.
 *
 * Ordering: one report at a time; what changes during one is in the next.
 * Failure: while the server is away it goes on; in the outbox each report takes the place of the one before it, so that
 * what gets through then is as new as it can be.
 */
interface StatusReporterOptions {
  report: () => Promise<void>;
  everyMs?: number;
  soonMs?: number;
}

/** In each report, so that the server knows when to miss the next. */
export const REPORT_EVERY_MS = 10_000;
/** Changes come in bursts. */
const SOON_MS = 100;

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

  /** Resolves when the first report is stored. */
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

  /** Joins the report that waits for the one under way, if one does. */
  now(): Promise<void> {
    this.#next ??= this.#reporting.then(() => {
      this.#next = null;
      this.#reporting = this.#options.report().catch(() => undefined);
      return this.#reporting;
    });
    return this.#next;
  }

  /** Reports one last time. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#every) clearInterval(this.#every);
    if (this.#soon) clearTimeout(this.#soon);
    await this.now();
  }
}

/** How often all sessions are reported: as often as the server tells others that an agent is unchanged. */
const ALL_EVERY_MS = 60_000;
/** If two reports are further apart than this, one is missing, and it is not known whether earlier ones arrived. */
const GAP_MS = 15_000;

/**
 * Which of a runner's sessions a report has to include. The server keeps the newest status of an agent and does not
 * write what repeats it: two sessions at rest reported in turn would be news for ever.
 */
export class ReportSelector {
  #told = new Map<string | undefined, string>();
  /** The session whose record came last: its status is the one the server has. */
  #newest: string | undefined;
  #allAt = Number.NEGATIVE_INFINITY;
  #pickedAt = Number.NEGATIVE_INFINITY;

  /** The next report includes all of them: the server may not have what it was told. */
  forget(): void {
    this.#allAt = Number.NEGATIVE_INFINITY;
  }

  /**
   * @param sessions a status record of each
   * @param now milliseconds of a steady clock
   * @returns those under way and those that have changed, or else the one that was told of last: each report is a sign
   *   of life, and one in which nothing is new repeats what the server has
   */
  pick(sessions: readonly StatusRecord[], now: number): StatusRecord[] {
    const isForAll = now - this.#allAt >= ALL_EVERY_MS || now - this.#pickedAt > GAP_MS;
    this.#pickedAt = now;
    if (isForAll) this.#allAt = now;
    const isNews = (record: StatusRecord) =>
      isActive(record) || this.#told.get(record.sessionId) !== statusText(record);
    const news = sessions.filter((record) => isForAll || isNews(record));
    const picked = news.length > 0 ? news : this.#signOfLife(sessions);
    this.#told = new Map(sessions.map((record) => [record.sessionId, statusText(record)]));
    this.#newest = picked.at(-1)?.sessionId;
    return picked;
  }

  #signOfLife(sessions: readonly StatusRecord[]): StatusRecord[] {
    const newest = sessions.find(({ sessionId }) => sessionId === this.#newest) ?? sessions.at(-1);
    return newest === undefined ? [] : [newest];
  }
}

function statusText({ status }: StatusRecord): string {
  return JSON.stringify(status);
}

/** The server misses a runner in these. */
function isActive({ status: { openTurnId, tasks, requests } }: StatusRecord): boolean {
  const isAny = (list: unknown) => Array.isArray(list) && list.length > 0;
  return typeof openTurnId === 'string' || isAny(tasks) || isAny(requests);
}
