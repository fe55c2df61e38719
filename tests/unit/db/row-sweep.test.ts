import { afterEach, expect, it, vi } from 'vitest';
import { RowSweep, type RowWork } from '@/db/row-sweep';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Rows of which some cannot be processed. */
function sweepOf(rows: string[], failures: Map<string, Error[]>) {
  const done: string[] = [];
  const left = ({ only, except }: Parameters<RowWork['work']>[0]) =>
    rows.filter((row) => !done.includes(row) && !except.includes(row) && (only === null || row === only));
  const work: RowWork['work'] = async (choice) => {
    const chosen = left(choice);
    for (const row of chosen) {
      const failure = failures.get(row)?.shift();
      if (failure !== undefined) throw failure;
    }
    done.push(...chosen);
    return chosen.length;
  };
  const sweep = new RowSweep({
    execute: async () => ({ rows: left({ only: null, except: [] }).map((id) => ({ id })) as never }),
  });
  const due = { table: 'rows', key: 'id', where: 'true', args: [] };
  return { done, run: () => sweep.run({ kind: 'a row', due, work }) };
}

it('a row is skipped when our code fails on it, and the others are processed', async () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => {});
  const failures = Array.from({ length: 2 }, () => new TypeError('x is not a function'));
  const { done, run } = sweepOf(['a', 'b', 'c'], new Map([['b', failures]]));
  await run();
  expect(done).toEqual(['a', 'c']);
  await run();
  expect(done).toEqual(['a', 'c']);
  expect(said).toHaveBeenCalledTimes(1);
});

it.each([
  ['the database is unavailable', () => new TypeError('fetch failed')],
  ['the machine is out of a resource', () => Object.assign(new Error('EMFILE'), { syscall: 'open' })],
])('a row that failed while %s is processed by the next sweep', async (_, failure) => {
  const { done, run } = sweepOf(['a', 'b'], new Map([['b', [failure()]]]));
  await expect(run()).rejects.toThrow();
  await run();
  expect(done).toEqual(['a', 'b']);
});
