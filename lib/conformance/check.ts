import { PROTOCOL_VERSION } from '@interlude/protocol/version';

export const GROUPS = [
  'outbox',
  'answers',
  'limits',
  'turns',
  'tasks',
  'requests',
  'commands',
  'liveness',
  'log level',
  'secrets',
  'never in the way',
  'order',
] as const;
export type Group = (typeof GROUPS)[number];

export interface Check<Target> {
  group: Group;
  /** The invariant as a sentence, without the full stop. Identifies the check in docs/conformance.md. */
  name: string;
  /** The section of PROTOCOL.md that requires it. */
  why: string;
  /** How to fix a target that fails. An assertion can give a more specific hint. */
  todo: string;
  /** Starts with the run and runs alongside the other checks. */
  isSlow?: true;
  run(target: Target): Promise<void>;
}

export type Row<Target> = Omit<Check<Target>, 'group' | 'name' | 'why'> & { why?: string };

/**
 * @param why section of PROTOCOL.md for rows that name no other
 * @param rows by name
 */
export function checksOf<Target>(group: Group, why: string, rows: Record<string, Row<Target>>): Check<Target>[] {
  return Object.entries(rows).map(([name, row]) => ({ group, name, why, ...row }));
}

type Verdict = 'passed' | 'failed' | 'skipped';

export interface CheckResult {
  group: Group;
  name: string;
  why: string;
  verdict: Verdict;
  /** Failed: expected, seen and how to fix it. Skipped: the runner's own reason. */
  detail: string | null;
  ms: number;
}

/** An invariant does not hold. Without a `todo`, the report shows the check's own. */
export class CheckFailed extends Error {
  readonly todo: string | undefined;

  constructor(expected: string, seen: unknown, todo?: string) {
    super(`expected ${expected}; seen: ${quoted(seen)}.`);
    this.todo = todo;
  }
}

/** The runner declares that it does not support this. The message is its reason. */
export class Unsupported extends Error {}

/** No further check can run. */
export class RunAborted extends Error {}

/** @throws CheckFailed */
export function assert(isMet: boolean, expected: string, seen: unknown, todo?: string): asserts isMet {
  if (!isMet) throw new CheckFailed(expected, seen, todo);
}

/**
 * @param expected a subset of an object's fields; of a list, every entry
 * @throws CheckFailed
 */
export function assertMatch(subject: string, seen: unknown, expected: unknown, todo?: string): void {
  if (!matches(seen, expected)) throw new CheckFailed(`${subject} to be ${quoted(expected)}`, seen, todo);
}

function matches(seen: unknown, expected: unknown): boolean {
  if (typeof expected !== 'object' || expected === null) return Object.is(seen, expected);
  if (typeof seen !== 'object' || seen === null) return false;
  if (Array.isArray(expected)) {
    return (
      Array.isArray(seen) &&
      seen.length === expected.length &&
      expected.every((entry, index) => matches(seen[index], entry))
    );
  }
  const fields = seen as Record<string, unknown>;
  return Object.entries(expected).every(([name, value]) => matches(fields[name], value));
}

const POLL_MS = 20;

export interface Timeout {
  timeoutMs: number;
  signal: AbortSignal;
}

export interface WaitOptions {
  todo?: string;
  timeoutMs?: number;
  /** Describes the current state, for the report. */
  seen?: () => unknown;
  /** Each increase restarts the timeout. */
  progress?: () => number;
}

type Maybe<Found> = Found | null | undefined | false;

/**
 * Polls until `find` returns something other than null, undefined or false.
 * @throws CheckFailed at the timeout
 */
export async function waitFor<Found>(
  timeout: Timeout,
  expected: string,
  find: () => Maybe<Found> | Promise<Maybe<Found>>,
  { todo, timeoutMs = timeout.timeoutMs, seen = () => 'no match', progress = () => 0 }: WaitOptions = {},
): Promise<Found> {
  let deadline = performance.now() + timeoutMs;
  let most = progress();
  for (;;) {
    const found = await find();
    if (found !== null && found !== undefined && found !== false) return found;
    const count = progress();
    if (count > most) [deadline, most] = [performance.now() + timeoutMs, count];
    if (timeout.signal.aborted) throw new RunAborted('it was stopped');
    if (performance.now() > deadline) {
      throw new CheckFailed(`${expected} within ${Math.round(timeoutMs / 1_000)} s`, await seen(), todo);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

const MAX_QUOTED_CHARACTERS = 600;

function quoted(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  return text.length <= MAX_QUOTED_CHARACTERS ? text : `${text.slice(0, MAX_QUOTED_CHARACTERS)}…`;
}

export interface RunOptions extends Timeout {
  /** The groups to run; empty for all. */
  only: readonly Group[];
  onResult(result: CheckResult): void;
}

/**
 * Runs a table of checks.
 *
 * Ordering: checks run one at a time, in table order. Slow checks mostly wait: they all start with the run, and their
 * results are reported in table order.
 * Failure: an error fails its check and the run continues; `Unsupported` skips the check. After `RunAborted`, an
 * aborted signal or the run's time limit, every remaining check fails with that reason.
 */
export async function runChecks<Target>(
  table: readonly Check<Target>[],
  target: Target,
  { only, timeoutMs, signal, onResult }: RunOptions,
): Promise<CheckResult[]> {
  const chosen = table.filter(({ group }) => only.length === 0 || only.includes(group));
  const deadline = performance.now() + timeoutMs;
  const results: CheckResult[] = [];
  let abortReason: string | null = null;
  const run = async (check: Check<Target>): Promise<CheckResult> => {
    const { group, name, why } = check;
    const startedAt = performance.now();
    const result = (verdict: Verdict, detail: string | null) => {
      return { group, name, why, verdict, detail, ms: Math.round(performance.now() - startedAt) };
    };
    try {
      await check.run(target);
      return result('passed', null);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (error instanceof Unsupported) return result('skipped', message);
      if (error instanceof RunAborted) abortReason ??= message;
      return result('failed', error instanceof CheckFailed ? `${message} ${error.todo ?? check.todo}` : message);
    }
  };
  const slow = new Map(chosen.flatMap((check) => (check.isSlow ? [[check, run(check)] as const] : [])));
  for (const check of chosen) {
    const { group, name, why } = check;
    if (signal.aborted) abortReason ??= 'the run was interrupted';
    if (performance.now() > deadline) abortReason ??= `${timeoutMs / 1_000} s passed first`;
    const result: CheckResult =
      abortReason === null
        ? await (slow.get(check) ?? run(check))
        : { group, name, why, verdict: 'failed', detail: `not checked: ${abortReason}`, ms: 0 };
    results.push(result);
    onResult(result);
  }
  return results;
}

/** The document that `--json` prints. */
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

const MARKS: Record<Verdict, string> = { passed: '✓', failed: '✗', skipped: '–' };

/** One line for a result and one for its detail, below a heading where the group changes. */
export function formatResult({ group, name, why, verdict, detail }: CheckResult, previous?: CheckResult): string {
  const heading = previous?.group === group ? '' : `${previous === undefined ? '' : '\n'}${group}\n`;
  const section = verdict === 'failed' ? ` (PROTOCOL.md, ${why})` : '';
  return `${heading}  ${MARKS[verdict]} ${name}${detail === null ? '' : `\n      ${detail}${section}`}\n`;
}

export function formatSummary({ passed, failed, skipped }: ConformanceReport): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}\n`;
}
