// @vitest-environment happy-dom
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { DayLine } from '@/components/transcript/turn-list';
import { NowProvider } from '@/components/ui/clock';

afterEach(() => {
  cleanup();
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

const HOUR_MS = 3_600_000;

/** Day lines between turns with these start times. */
function daysOf(starts: number[], now: number): (string | null)[] {
  vi.useFakeTimers({ now });
  render(
    <NowProvider renderedAt={now}>
      {starts.map((startedAt, index) => (
        <DayLine
          key={startedAt}
          turn={{ startedAt }}
          before={index === 0 ? null : { startedAt: starts[index - 1] as number }}
        />
      ))}
    </NowProvider>,
  );
  return screen.queryAllByRole('separator').map((line) => line.getAttribute('aria-label'));
}

test('shows the day above the first turn of each day', () => {
  const noon = new Date(2026, 10, 22, 12).getTime();
  const starts = [-72, -71, -24, 0].map((hours) => noon + hours * HOUR_MS);
  expect(daysOf(starts, noon)).toEqual(['Thursday 19 November', 'Yesterday', 'Today']);
});

test.each([
  ['UTC', ['Thursday 19 November']],
  ['Asia/Kolkata', ['Thursday 19 November', 'Friday 20 November']],
])('tells days apart by the reader’s own time zone: %s', (zone, days) => {
  vi.stubEnv('TZ', zone);
  // half an hour before and after midnight in India
  const starts = [18, 19].map((hour) => Date.UTC(2026, 10, 19, hour));
  expect(daysOf(starts, Date.UTC(2026, 10, 22))).toEqual(days);
});
