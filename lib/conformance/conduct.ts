import { type Check, type CheckResult, type Group, Hopeless, NotDone } from './check';

/**
 * Runs a table of checks.
 *
 * Ordering: one after the other, as they stand in the table; those that only wait run beside them from the beginning,
 * and are told in their places.
 * Failure: a check that fails does not end the run. Once nothing can be checked any more, or the time of the whole run is
 * over, what is left has failed, with the reason.
 */
export interface Conduct {
  only: readonly Group[];
  /** Of the whole run. */
  withinMs: number;
  signal: AbortSignal;
  onResult(result: CheckResult): void;
}

export async function conduct<Stage>(
  table: readonly Check<Stage>[],
  stage: Stage,
  { only, withinMs, signal, onResult }: Conduct,
): Promise<CheckResult[]> {
  const chosen = table.filter(({ group }) => only.length === 0 || only.includes(group));
  const deadline = performance.now() + withinMs;
  const results: CheckResult[] = [];
  let end: string | null = null;
  const judge = async (check: Check<Stage>) => {
    const { result, isOver } = await judged(check, stage);
    if (isOver) end ??= result.detail;
    return result;
  };
  const waiting = new Map(chosen.flatMap((check) => (check.isSlow ? [[check, judge(check)] as const] : [])));
  for (const check of chosen) {
    if (signal.aborted) end ??= 'the run was stopped before';
    if (performance.now() > deadline) end ??= `${withinMs / 1_000} s were over before`;
    const result = end === null ? await (waiting.get(check) ?? judge(check)) : notRun(check, end);
    results.push(result);
    onResult(result);
  }
  return results;
}

async function judged<Stage>(check: Check<Stage>, stage: Stage): Promise<{ result: CheckResult; isOver: boolean }> {
  const { group, name, why } = check;
  const since = performance.now();
  const result = (verdict: CheckResult['verdict'], detail: string | null): CheckResult => {
    return { group, name, why, verdict, detail, ms: Math.round(performance.now() - since) };
  };
  try {
    await check.run(stage);
    return { result: result('passed', null), isOver: false };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof NotDone) return { result: result('skipped', message), isOver: false };
    return { result: result('failed', message), isOver: error instanceof Hopeless };
  }
}

function notRun<Stage>({ group, name, why }: Check<Stage>, end: string): CheckResult {
  return { group, name, why, verdict: 'failed', detail: `not checked: ${end}`, ms: 0 };
}
