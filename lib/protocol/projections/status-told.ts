import type { AgUiEvent } from '../ag-ui';
import type { Observations, ProcessExit, SelfReport } from '../agent-state';
import type { AgentStatus } from '../agent-status';
import { CUSTOM, caption, customName, pickTime, taskEndOf } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import { AHEAD_MS, MAX_REPORT_SUMMARY } from '../limits';
import type { AgentLogLevel } from '../read-models';
import type { ReportState } from '../session-states';
import { truncateText } from '../text';

/** What a status record tells of its session's state. */
export interface StatusTold {
  report: { value: SelfReport; turnId: string | null; at: number | null } | null;
  /** Undefined if it does not say. */
  agent: NonNullable<Observations['agent']>['value'] | undefined;
  /** Its process: gone, there, or null if it does not say. */
  process: ProcessExit | 'there' | null;
  /** Its agent can't be reached: since when on its runner's clock, and for how long by then. Null: it can. */
  unreachable: { since: number; forMs: number; reason: string | null; last: AtWork | null } | null;
  /** Whether a message reaches it while it is idle; null if that goes without saying. */
  isWakeable: boolean | null;
  /** Processor seconds of its processes; null if not reported. */
  cpuSeconds: number | null;
  /** It may be told ahead of events that happened before it: see AHEAD_MS. */
  isAhead: boolean;
  /** The work that it lists as open, as far as it gives such lists. */
  lists: { taskIds: readonly string[] | null; requestIds: readonly string[] | null } | null;
  /** The same for two records that tell the same, apart from their lists. */
  key: string;
  /** The same for two records that list the same. */
  listsKey: string;
}

type AtWork = NonNullable<NonNullable<AgentStatus['unreachable']>['last']>;

/** The words runners have for what an agent says of itself. */
const REPORTS: Record<string, ReportState | undefined> = {
  working: 'working',
  idle: 'idle',
  complete: 'complete',
  completed: 'complete',
  done: 'complete',
  failure: 'failure',
  failed: 'failure',
  error: 'failure',
};

/** And for what they see it do. */
const SEEN: Record<string, StatusTold['agent']> = {
  busy: 'running',
  running: 'running',
  still: 'still',
  stable: 'still',
  compacting: 'compacting',
};

/**
 * @param at when it was told, on the runner's clock
 * @returns null if the record says nothing of the state
 */
export function statusTold(status: AgentStatus, at: number): StatusTold | null {
  const { state, report, openTurnId, process, unreachable, wakeable, cpuSeconds } = status;
  const word = state?.toLowerCase() ?? '';
  const reported = report === undefined ? wordIn(REPORTS, word) : undefined;
  const seen = process?.state === 'restarting' ? 'restarting' : wordIn(SEEN, word);
  const isReady = process === undefined || process.state === 'running';
  const told = {
    report:
      report !== undefined
        ? { value: reportOf(report), turnId: report.turnId ?? null, at: report.at ?? null }
        : reported === undefined
          ? null
          : { value: { state: reported, summary: null, link: null }, turnId: null, at: null },
    agent: seen ?? (openTurnId === undefined || !isReady ? undefined : openTurnId === null ? 'still' : 'running'),
    process:
      process === undefined
        ? null
        : process.state === 'exited'
          ? { code: process.exitCode, signal: caption(process.signal ?? null), reason: null }
          : ('there' as const),
    unreachable:
      unreachable === undefined
        ? null
        : {
            since: unreachable.since,
            forMs: Math.max(0, at - unreachable.since),
            reason: caption(unreachable.reason ?? null),
            last: unreachable.last ?? null,
          },
    isWakeable: wakeable ?? null,
    cpuSeconds: cpuSeconds ?? null,
    // during an outage, an outbox sends its newest record in the place of an older one
    isAhead: (status.outbox?.oldestAgeMs ?? 0) > AHEAD_MS,
  };
  const lists = listsOf(status);
  const isSilent = told.report === null && told.agent === undefined && told.process === null;
  const saysNothing = isSilent && told.unreachable === null;
  if (saysNothing && told.isWakeable === null && lists === null) return null;
  const { isAhead, unreachable: away, ...rest } = told;
  const observed = away === null ? rest : { ...rest, unreachableSince: away.since };
  const isEndAhead = isAhead && told.process !== null && told.process !== 'there';
  const key = JSON.stringify([observed, openTurnId ?? null, ...(isEndAhead ? [isAhead] : [])]);
  return { ...told, lists, key, listsKey: fingerprint(JSON.stringify([lists, isAhead])) };
}

function listsOf({ tasks, requests }: AgentStatus): StatusTold['lists'] {
  if (tasks === undefined && requests === undefined) return null;
  return { taskIds: tasks?.map(({ id }) => id) ?? null, requestIds: requests ?? null };
}

/**
 * Whether the same lists as before may say something new behind this event: work has begun that they don't have, or is taken
 * to be lost.
 */
export function outdatesLists(event: AgUiEvent): boolean {
  const name = customName(event);
  if (readInterlude(event).presumed === true) return false;
  if (name === CUSTOM.requestOpened || name === CUSTOM.runnerAway) return true;
  return name?.startsWith('task:') === true && name !== CUSTOM.taskOutput && taskEndOf(event) === null;
}

/** A text of 14 signs that differs where the text does (cyrb53). Lists may be long, and are only compared. */
function fingerprint(text: string): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    high = Math.imul(high ^ unit, 2_654_435_761);
    low = Math.imul(low ^ unit, 1_597_334_677);
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return (4_294_967_296 * (2_097_151 & low) + (high >>> 0)).toString(16).padStart(14, '0');
}

function reportOf(report: NonNullable<AgentStatus['report']>): SelfReport {
  return {
    state: report.state,
    summary: report.summary === undefined ? null : truncateText(report.summary, MAX_REPORT_SUMMARY),
    link: caption(report.link ?? null),
  };
}

function wordIn<Value>(words: Record<string, Value | undefined>, word: string): Value | undefined {
  return Object.hasOwn(words, word) ? words[word] : undefined;
}

/**
 * What a status record says about the level its runner logs at: `logLevel`, and in `logSwitch` who set it, until when,
 * and what the default is.
 *
 * @param at when the server received it
 * @returns `before` itself if the record says nothing new
 */
export function heardLevel(before: AgentLogLevel, status: AgentStatus, at: number): AgentLogLevel {
  const { logLevel: level, logSwitch: said } = status;
  if (level === undefined) return before;
  const by = said?.by ? truncateText(said.by, MOST_BY) : null;
  const until = said === undefined ? null : pickTime(said, 'until');
  const base = said?.base ?? null;
  if (level === before.level && by === before.by && until === before.until && base === before.base) return before;
  return { ...before, level, since: level === before.level ? before.since : at, by, until, base };
}

const MOST_BY = 256;
