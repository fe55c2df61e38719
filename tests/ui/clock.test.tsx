// @vitest-environment happy-dom

import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { Ago, correctClocks, NowProvider, useHasPassed } from '@/components/ui/clock';

const HOUR_MS = 3_600_000;

afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

function Deadline({ at }: { at: number }) {
  return <p>{useHasPassed(at) ? 'Passed' : 'Ahead'}</p>;
}

it('shows ages by the server’s clock after the browser’s clock was set', async () => {
  vi.useFakeTimers();
  const [start, steady] = [Date.now(), performance.now()];
  const serverTime = () => start + performance.now() - steady;
  let isAway = false;
  const end = correctClocks(async () => {
    if (isAway) throw new TypeError('offline');
    return serverTime();
  });
  render(
    <NowProvider renderedAt={start}>
      <Ago at={start} inWords />
      <Deadline at={start + HOUR_MS} />
    </NowProvider>,
  );
  const shownAfter = async (ms: number) => {
    await act(() => vi.advanceTimersByTimeAsync(ms));
    return `${screen.getByRole('time').textContent}, ${screen.getByText(/Passed|Ahead/).textContent}`;
  };
  expect(await shownAfter(120_000)).toBe('2 min ago, Ahead');
  vi.setSystemTime(Date.now() + 5 * HOUR_MS);
  expect(await shownAfter(60_000)).toBe('3 min ago, Ahead');
  isAway = true;
  vi.setSystemTime(Date.now() - 10 * HOUR_MS);
  await shownAfter(2_000);
  isAway = false;
  expect(await shownAfter(58_000)).toBe('4 min ago, Ahead');
  expect(await shownAfter(55 * 60_000)).toBe('59 min ago, Ahead');
  expect(await shownAfter(60_000)).toBe('1 h ago, Passed');
  end();
});
