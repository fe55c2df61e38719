import { PROTOCOL_VERSION } from '@interlude/protocol/version';
import type { CheckResult, Verdict } from './check';

/** What a run came to, as `--json` prints it. */
export interface ConformanceReport {
  mode: 'server' | 'runner';
  /** The server's address, or the runner's command. */
  target: string;
  protocol: string;
  checks: CheckResult[];
  passed: number;
  failed: number;
  skipped: number;
}

export function reportOf(mode: ConformanceReport['mode'], target: string, checks: CheckResult[]): ConformanceReport {
  const count = (verdict: Verdict) => checks.filter((check) => check.verdict === verdict).length;
  const [passed, failed, skipped] = [count('passed'), count('failed'), count('skipped')];
  return { mode, target, protocol: PROTOCOL_VERSION, checks, passed, failed, skipped };
}

const SIGNS: Record<Verdict, string> = { passed: '✓', failed: '✗', skipped: '–' };

/** A check as one line, with what was seen on a second one; its group as a heading where it begins. */
export function linesOf({ group, name, why, verdict, detail }: CheckResult, before: CheckResult | undefined): string {
  const heading = before?.group === group ? '' : `${before === undefined ? '' : '\n'}${group}\n`;
  const where = verdict === 'failed' ? ` (PROTOCOL.md, ${why})` : '';
  return `${heading}  ${SIGNS[verdict]} ${name}${detail === null ? '' : `\n      ${detail}${where}`}\n`;
}

export function sumOf({ passed, failed, skipped }: ConformanceReport): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}\n`;
}
