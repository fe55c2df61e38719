import type { TranscriptPage } from '@interlude/protocol/read-models';
import { expect, it } from 'vitest';
import { firstPageOf } from '@/components/transcript/first-page';
import { aCall, aMessage, aTaskMoment, aTurn } from './rows';

const page = (sizes: readonly number[]): TranscriptPage => ({
  position: '9',
  hasMore: false,
  turns: sizes.map((size, index) => aTurn({ id: `r${index}`, items: [aMessage({ text: 'x'.repeat(size) }), aCall()] })),
});
const ids = (first: TranscriptPage | null) => first?.turns.map(({ id }) => id);

it('sends all turns of usual size with the page', () => {
  const usual = page([100, 2_000, 50]);
  expect(firstPageOf(usual)).toBe(usual);
});

it('sends only the newest of large turns, and says that there are older ones', () => {
  const first = firstPageOf(page([300_000, 300_000, 150_000, 150_000]));
  expect(ids(first)).toEqual(['r2', 'r3']);
  expect(first?.hasMore).toBe(true);
});

it('sends a large newest turn, but leaves one that is too large to the browser', () => {
  expect(ids(firstPageOf(page([10, 900_000])))).toEqual(['r1']);
  expect(firstPageOf(page([10, 3_000_000]))).toBe(null);
});

it('leaves turns with very many values to the browser, however short', () => {
  const turn = (count: number) => aTurn({ id: 'r', items: [aCall({ args: { list: Array(count).fill(1) } })] });
  expect(firstPageOf({ ...page([]), turns: [turn(15_000)] })).not.toBe(null);
  expect(firstPageOf({ ...page([]), turns: [turn(30_000)] })).toBe(null);
});

it('sends fewer turns when they have thousands of items, however short', () => {
  const items = Array.from({ length: 1_000 }, (_, index) =>
    aTaskMoment({ id: `t${index}`, position: `${index + 10}` }),
  );
  const turns = ['r0', 'r1', 'r2', 'r3', 'r4'].map((id) => aTurn({ id, items }));
  expect(ids(firstPageOf({ ...page([]), turns }))).toEqual(['r3', 'r4']);
});
