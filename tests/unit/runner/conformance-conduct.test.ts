import {
  assertMatch,
  type Check,
  CheckFailed,
  type CheckResult,
  formatResult,
  formatSummary,
  RunAborted,
  type RunOptions,
  reportOf,
  runChecks,
  Unsupported,
  waitFor,
} from '@interlude/conformance/check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

const check = (name: string, run: () => Promise<void>, more: Partial<Check<null>> = {}): Check<null> => ({
  group: 'order',
  name,
  why: '1, Terms',
  todo: 'Fix it.',
  run,
  ...more,
});
const passes = async () => {};
const throws = (error: Error) => async () => {
  throw error;
};

async function runTable(table: Check<null>[], more: Partial<RunOptions> = {}) {
  const reported: string[] = [];
  const options = { only: [], timeoutMs: 10_000, signal: new AbortController().signal, ...more };
  const results = await runChecks(table, null, { ...options, onResult: ({ name }) => void reported.push(name) });
  return { results, reported, verdicts: results.map(({ verdict }) => verdict) };
}

describe('runChecks', () => {
  test('continues after a check that throws', async () => {
    const { verdicts, results } = await runTable([
      check('a', throws(new CheckFailed('two', 1, 'Count.'))),
      check('b', throws(new CheckFailed('two', 1))),
      check('c', throws(new TypeError('x is not a function'))),
      check('d', throws(new Unsupported('it has no time'))),
      check('e', passes),
    ]);
    expect(verdicts).toEqual(['failed', 'failed', 'failed', 'skipped', 'passed']);
    expect(results.map(({ detail }) => detail)).toEqual([
      'expected two; seen: 1. Count.',
      'expected two; seen: 1. Fix it.',
      'x is not a function',
      'it has no time',
      null,
    ]);
  });

  test('fails the remaining checks after RunAborted', async () => {
    const { verdicts, results } = await runTable([
      check('a', throws(new RunAborted('it is gone'))),
      check('b', passes),
    ]);
    expect(verdicts).toEqual(['failed', 'failed']);
    expect(results[1]?.detail).toBe('not checked: it is gone');
  });

  test('starts slow checks first and reports them in table order', async () => {
    const order: string[] = [];
    const notes = (name: string) => async () => void order.push(name);
    const { reported } = await runTable([check('a', notes('a')), check('b', notes('b'), { isSlow: true })]);
    expect(order).toEqual(['b', 'a']);
    expect(reported).toEqual(['a', 'b']);
  });

  test('runs the selected groups only, and nothing after an abort or the time limit', async () => {
    const table = [check('a', passes), check('b', passes, { group: 'turns' })];
    expect((await runTable(table, { only: ['turns'] })).reported).toEqual(['b']);
    expect((await runTable(table, { signal: AbortSignal.abort() })).verdicts).toEqual(['failed', 'failed']);
    expect((await runTable(table, { timeoutMs: -1 })).results[0]?.detail).toMatch(/passed first$/);
  });
});

test('assertMatch compares the expected fields of objects and every entry of lists', () => {
  const seen = { a: 1, list: [{ b: 2, c: 3 }] };
  expect(() => assertMatch('it', seen, { list: [{ b: 2 }] })).not.toThrow();
  for (const other of [{ a: 2 }, { list: [] }, { list: [{ b: 2 }, {}] }, { list: [{ d: undefined, b: 1 }] }, [1]]) {
    expect(() => assertMatch('it', seen, other)).toThrow(/^expected it to be .*; seen: \{"a":1.*\}\.$/);
  }
});

test('the report has a heading per group, a line per check and a summary', () => {
  const result = (name: string, more: Partial<CheckResult> = {}): CheckResult => {
    return { group: 'order', name, why: '1, Terms', verdict: 'passed', detail: null, ms: 1, ...more };
  };
  const results = [
    result('one'),
    result('two', { verdict: 'failed', detail: 'expected 1' }),
    result('three', { group: 'turns', verdict: 'skipped', detail: 'it has no time' }),
  ];
  const text = results.map((one, index) => formatResult(one, results[index - 1])).join('');
  expect(text + formatSummary(reportOf('server', 'http://x', results))).toBe(`order
  ✓ one
  ✗ two
      expected 1 (PROTOCOL.md, 1, Terms)

turns
  – three
      it has no time
1 passed, 1 failed, 1 skipped
`);
});

describe('waitFor', () => {
  const waiting = async (progress: () => number) => {
    const timeout = { timeoutMs: 1_000, signal: new AbortController().signal };
    let polls = 0;
    const find = () => {
      vi.advanceTimersByTime(900);
      return ++polls === 5;
    };
    return await waitFor(timeout, 'all of it', find, { todo: 'Send it.', seen: () => polls, progress });
  };
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());

  test('fails at the timeout when progress stops', async () => {
    await expect(waiting(() => 7)).rejects.toThrow('expected all of it within 1 s; seen: 2.');
  });

  test('restarts the timeout on progress', async () => {
    let count = 0;
    expect(await waiting(() => ++count)).toBe(true);
  });
});
