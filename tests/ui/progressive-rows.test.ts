// @vitest-environment happy-dom
import { cleanup, renderHook, waitFor } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { STEP_WEIGHT, useProgressiveRows } from '@/components/ui/row-window';

afterEach(cleanup);

interface Row {
  id: number;
}

/** Four rows fill one step. */
const weightOf = () => STEP_WEIGHT / 4;
const rowsTo = (count: number): Row[] => Array.from({ length: count }, (_, id) => ({ id }));

function shown(first: { rows: readonly Row[] }, isInSight?: (row: Row) => boolean) {
  const passes: number[][] = [];
  const hook = renderHook(
    ({ rows }: { rows: readonly Row[] }) => {
      const waiting = useProgressiveRows(rows, {
        keyOf: ({ id }) => id,
        weightOf,
        firstWeight: 2 * weightOf(),
        ...(isInSight && { isInSight }),
      });
      passes.push(rows.filter((row) => !waiting.has(row)).map(({ id }) => id));
    },
    { initialProps: first },
  );
  return { ...hook, passes, last: () => passes.at(-1) };
}

it('adds the last rows first and the others step by step', async () => {
  const { passes, last } = shown({ rows: rowsTo(9) });
  expect(last()).toEqual([7, 8]);
  await waitFor(() => expect(last()).toHaveLength(9));
  expect(passes).toContainEqual([3, 4, 5, 6, 7, 8]);
  const more = passes.slice(1).map((pass, index) => pass.length - (passes[index] as number[]).length);
  expect(Math.max(...more)).toBe(4);
});

it('keeps the rows in the page when others are added', async () => {
  const { rerender, last } = shown({ rows: rowsTo(9) });
  await waitFor(() => expect(last()).toHaveLength(9));
  rerender({ rows: rowsTo(19) });
  expect(last()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 18]);
  await waitFor(() => expect(last()).toHaveLength(19));
});

it('shows visible rows regardless of weight', () => {
  const { last } = shown({ rows: rowsTo(9) }, ({ id }) => id < 3);
  expect(last()).toEqual([0, 1, 2, 7, 8]);
});
