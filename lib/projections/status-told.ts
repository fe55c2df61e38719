import type { Observations, ProcessExit, ReportState, SelfReport } from '@/lib/protocol/agent-state';
import type { AgentStatus } from '@/lib/protocol/agent-status';
import { cutText } from '@/lib/protocol/cut-text';
import { MAX_REPORT_SUMMARY } from '@/lib/protocol/limits';
import { caption } from './event-fields';

/** What a status record tells of its session's state. */
export interface StatusTold {
  report: { value: SelfReport; turnId: string | null; at: number | null } | null;
  /** Undefined if it does not say. */
  agent: NonNullable<Observations['agent']>['value'] | undefined;
  /** Its process: gone, there, or null if it does not say. */
  process: ProcessExit | 'there' | null;
  /** The same for two records that tell the same. */
  key: string;
}

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

/** @returns null if the record says nothing of the state */
export function statusTold(status: AgentStatus): StatusTold | null {
  const { state, report, openTurnId, process } = status;
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
  };
  if (told.report === null && told.agent === undefined && told.process === null) return null;
  return { ...told, key: JSON.stringify([told, openTurnId ?? null]) };
}

function reportOf(report: NonNullable<AgentStatus['report']>): SelfReport {
  return {
    state: report.state,
    summary: report.summary === undefined ? null : cutText(report.summary, MAX_REPORT_SUMMARY),
    link: caption(report.link ?? null),
  };
}

function wordIn<Value>(words: Record<string, Value | undefined>, word: string): Value | undefined {
  return Object.hasOwn(words, word) ? words[word] : undefined;
}
