import type { AgUiEvent } from '../ag-ui';
import type { AgentStatus, Observations, ProcessExit, SelfReport } from '../agent-status';
import { CUSTOM, caption, customName, pickTime, taskEndOf } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import { AHEAD_MS, MAX_REPORT_SUMMARY } from '../limits';
import type { AgentLogLevel } from '../read-models';
import type { ReportState } from '../session-states';
import { truncateText } from '../text';

/** The session state reported by a status record. */
export interface ReportedStatus {
  report: { value: SelfReport; turnId: string | null; at: number | null } | null;
  /** Undefined if not reported. */
  agent: NonNullable<Observations['agent']>['value'] | undefined;
  /** The agent's process: its exit, `there`, or null if not reported. `key` stores it. */
  process: ProcessExit | 'there' | null;
  /** An outage: its start on the runner's clock and its duration so far. Null if the agent is reachable. */
  unreachable: { since: number; durationMs: number; reason: string | null; last: ActiveState | null } | null;
  /** True if a message reaches the idle agent; null if not reported. */
  isWakeable: boolean | null;
  /** CPU seconds of the agent's processes; null if not reported. */
  cpuSeconds: number | null;
  /** True if the record may arrive before earlier events, see AHEAD_MS. */
  isAhead: boolean;
  /** Ids of open work, null for a list that is not reported. */
  lists: { taskIds: readonly string[] | null; requestIds: readonly string[] | null } | null;
  /** Equal for records with the same content apart from their lists. Stored: sessions compare it after an upgrade. */
  key: string;
  /** Equal for records with the same lists. */
  listsKey: string;
}

type ActiveState = NonNullable<NonNullable<AgentStatus['unreachable']>['last']>;

/** Self-report words of runners. */
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

/** Activity words of runners. */
const ACTIVITIES: Record<string, ReportedStatus['agent']> = {
  busy: 'running',
  running: 'running',
  still: 'still',
  stable: 'still',
  compacting: 'compacting',
};

/**
 * @param at time of the record, epoch milliseconds on the runner's clock
 * @returns null if the record reports no state
 */
export function parseReportedStatus(status: AgentStatus, at: number): ReportedStatus | null {
  const { state, report, openTurnId, process, unreachable, wakeable, cpuSeconds } = status;
  const word = state?.toLowerCase() ?? '';
  const reported = report === undefined ? stateOfWord(REPORTS, word) : undefined;
  const seen = process?.state === 'restarting' ? 'restarting' : stateOfWord(ACTIVITIES, word);
  const isReady = process === undefined || process.state === 'running';
  const parsed = {
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
            durationMs: Math.max(0, at - unreachable.since),
            reason: caption(unreachable.reason ?? null),
            last: unreachable.last ?? null,
          },
    isWakeable: wakeable ?? null,
    cpuSeconds: cpuSeconds ?? null,
    // During an outage, an outbox replaces an older status record by the newest.
    isAhead: (status.outbox?.oldestAgeMs ?? 0) > AHEAD_MS,
  };
  const lists = listsOf(status);
  const isSilent = parsed.report === null && parsed.agent === undefined && parsed.process === null;
  const isEmpty = isSilent && parsed.unreachable === null;
  if (isEmpty && parsed.isWakeable === null && lists === null) return null;
  const { isAhead, unreachable: away, ...rest } = parsed;
  const observed = away === null ? rest : { ...rest, unreachableSince: away.since };
  const isEndAhead = isAhead && parsed.process !== null && parsed.process !== 'there';
  const key = JSON.stringify([observed, openTurnId ?? null, ...(isEndAhead ? [isAhead] : [])]);
  return { ...parsed, lists, key, listsKey: fingerprint(JSON.stringify([lists, isAhead])) };
}

function listsOf({ tasks, requests }: AgentStatus): ReportedStatus['lists'] {
  if (tasks === undefined && requests === undefined) return null;
  return { taskIds: tasks?.map(({ id }) => id) ?? null, requestIds: requests ?? null };
}

/**
 * True if unchanged lists must be applied again after this event, because it started work that they lack or presumed
 * work lost.
 */
export function outdatesLists(event: AgUiEvent): boolean {
  const name = customName(event);
  if (readInterlude(event).presumed === true) return false;
  if (name === CUSTOM.requestOpened || name === CUSTOM.runnerAway) return true;
  return name?.startsWith('task:') === true && name !== CUSTOM.taskOutput && taskEndOf(event) === null;
}

/** A 14-digit hash (cyrb53) for comparing lists, which may be long. */
function fingerprint(text: string): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
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

function stateOfWord<Value>(words: Record<string, Value | undefined>, word: string): Value | undefined {
  return Object.hasOwn(words, word) ? words[word] : undefined;
}

/**
 * Applies the log level of a status record: `logLevel`, and `logSwitch` with its author, expiry and default.
 *
 * @param at time of receipt, epoch milliseconds
 * @returns `before` itself if unchanged
 */
export function updateLogLevel(before: AgentLogLevel, status: AgentStatus, at: number): AgentLogLevel {
  const { logLevel: level, logSwitch } = status;
  if (level === undefined) return before;
  const by = logSwitch?.by ? truncateText(logSwitch.by, AUTHOR_LENGTH) : null;
  const until = logSwitch === undefined ? null : pickTime(logSwitch, 'until');
  const base = logSwitch?.base ?? null;
  if (level === before.level && by === before.by && until === before.until && base === before.base) return before;
  return { ...before, level, since: level === before.level ? before.since : at, by, until, base };
}

const AUTHOR_LENGTH = 256;
