import { agree, type Check, type CheckResult, Hopeless, NotDone, Unmet, until } from '@interlude/conformance/check';
import { conduct } from '@interlude/conformance/conduct';
import { linesOf, reportOf, sumOf } from '@interlude/conformance/report';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

const check = (name: string, run: () => Promise<void>, more: Partial<Check<null>> = {}): Check<null> => ({
  group: 'order',
  name,
  why: '1, Terms',
  run,
  ...more,
});
const passes = async () => {};
const throws = (error: Error) => async () => {
  throw error;
};

async function conducted(table: Check<null>[], more: Partial<Parameters<typeof conduct>[2]> = {}) {
  const told: string[] = [];
  const how = { only: [], withinMs: 10_000, signal: new AbortController().signal, ...more };
  const results = await conduct(table, null, { ...how, onResult: ({ name }) => void told.push(name) });
  return { results, told, verdicts: results.map(({ verdict }) => verdict) };
}

describe('a run', () => {
  test('goes on behind a check that fails, whatever that throws', async () => {
    const unmet = throws(new Unmet('two', 1, 'Count.'));
    const { verdicts, results } = await conducted([
      check('a', unmet),
      check('b', throws(new TypeError('x is not a function'))),
      check('c', throws(new NotDone('it has no time'))),
      check('d', passes),
    ]);
    expect(verdicts).toEqual(['failed', 'failed', 'skipped', 'passed']);
    expect(results.map(({ detail }) => detail)).toEqual([
      'expected two; seen: 1. Count.',
      'x is not a function',
      'it has no time',
      null,
    ]);
  });

  test('ends with the first that leaves nothing to be checked, and says so of the others', async () => {
    const { verdicts, results } = await conducted([check('a', throws(new Hopeless('it is gone'))), check('b', passes)]);
    expect(verdicts).toEqual(['failed', 'failed']);
    expect(results[1]?.detail).toBe('not checked: it is gone');
  });

  test('begins what is slow at once, and tells of it in its place', async () => {
    const order: string[] = [];
    const notes = (name: string) => async () => void order.push(name);
    const { told } = await conducted([check('a', notes('a')), check('b', notes('b'), { isSlow: true })]);
    expect(order).toEqual(['b', 'a']);
    expect(told).toEqual(['a', 'b']);
  });

  test('checks the groups that were asked for, and nothing once it is stopped or late', async () => {
    const table = [check('a', passes), check('b', passes, { group: 'turns' })];
    expect((await conducted(table, { only: ['turns'] })).told).toEqual(['b']);
    expect((await conducted(table, { signal: AbortSignal.abort() })).verdicts).toEqual(['failed', 'failed']);
    expect((await conducted(table, { withinMs: -1 })).results[0]?.detail).toMatch(/were over before$/);
  });
});

test('an object agrees if it has the fields that count, a list if each entry does', () => {
  const seen = { a: 1, list: [{ b: 2, c: 3 }] };
  expect(() => agree('it', seen, { list: [{ b: 2 }] }, '')).not.toThrow();
  for (const other of [{ a: 2 }, { list: [] }, { list: [{ b: 2 }, {}] }, { list: [{ d: undefined, b: 1 }] }, [1]]) {
    expect(() => agree('it', seen, other, 'Do it.')).toThrow(/^expected it to be .*; seen: \{"a":1.*\. Do it\.$/);
  }
});

test('the report has a heading for each group, one line for each check and its sum', () => {
  const result = (name: string, more: Partial<CheckResult> = {}): CheckResult => {
    return { group: 'order', name, why: '1, Terms', verdict: 'passed', detail: null, ms: 1, ...more };
  };
  const results = [
    result('one'),
    result('two', { verdict: 'failed', detail: 'expected 1' }),
    result('three', { group: 'turns', verdict: 'skipped', detail: 'it has no time' }),
  ];
  const text = results.map((one, at) => linesOf(one, results[at - 1])).join('');
  expect(text + sumOf(reportOf('server', 'http://x', results))).toBe(`order
  ✓ one
  ✗ two
      expected 1 (PROTOCOL.md, 1, Terms)

turns
  – three
      it has no time
1 passed, 1 failed, 1 skipped
`);
});

describe('what is waited for', () => {
  const waiting = async (came: () => number) => {
    const patience = { withinMs: 1_000, signal: new AbortController().signal };
    let looks = 0;
    const look = () => {
      vi.advanceTimersByTime(900);
      return ++looks === 5;
    };
    return await until(patience, 'all of it', look, 'Send it.', { seen: () => looks, came });
  };
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());

  test('has not come in time, though there was much of it before', async () => {
    await expect(waiting(() => 7)).rejects.toThrow('expected all of it within 1 s; seen: 2. Send it.');
  });

  test('has more time while more of it comes', async () => {
    let count = 0;
    expect(await waiting(() => ++count)).toBe(true);
  });
});
