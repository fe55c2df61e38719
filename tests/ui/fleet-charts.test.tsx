// @vitest-environment happy-dom

import { type Activity, durationSteps } from '@interlude/protocol/read-models';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import * as barChart from '@/components/agents/bar-chart';
import { countTicks } from '@/components/agents/bar-chart';
import { FleetCharts } from '@/components/agents/fleet-charts';

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

it('marks the current minute as open in bar, value and summary', async () => {
  const drawn = vi.spyOn(barChart, 'BarChart').mockReturnValue(null as never);
  const since = Date.UTC(2026, 0, 1, 12, 0);
  const activity: Activity = {
    position: '1',
    at: since + 130_000,
    since,
    events: [40, 60, 7],
    tasks: durationSteps([2_000]),
    answers: [],
  };
  vi.stubGlobal('fetch', async () => Response.json(activity));
  render(
    <QueryClientProvider client={new QueryClient()}>
      <FleetCharts />
    </QueryClientProvider>,
  );
  expect(await screen.findByText('107 events in the last 3 minutes · peak 60/min · 7 this minute')).toBeDefined();
  const figures = screen.getAllByRole('row').map(({ textContent }) => textContent);
  expect(figures.slice(1, 4).map((text) => text?.replace(/^\d\d:\d\d/, ''))).toEqual(['40', '60', ', so far7']);
  expect(drawn.mock.lastCall?.[0]).toMatchObject({ values: [40, 60, 7], lastIsOpen: true });
  const steps = screen.getAllByRole('listitem').map(({ textContent }) => textContent);
  expect(steps).toEqual(['under 1 s0', '1–10 s1', '10 s–1 min0', '1–10 min0', '10 min–1 h0', 'over 1 h0']);
  expect(screen.getByText('No replies yet.')).toBeDefined();
});

it('ends the axis with a tick above the highest count', () => {
  expect([0, 1, 3, 4, 7, 11, 16, 230, 1_234].map((most) => countTicks(most))).toEqual([
    [0, 1],
    [0, 1, 2],
    [0, 2, 4],
    [0, 2, 4, 6],
    [0, 5, 10],
    [0, 5, 10, 15],
    [0, 10, 20],
    [0, 100, 200, 300],
    [0, 500, 1_000, 1_500],
  ]);
  for (const most of [5, 99, 100, 101, 7e6, 9e12]) {
    const ticks = countTicks(most);
    expect(ticks.at(-1)).toBeGreaterThan(most);
    expect(ticks.length).toBeLessThanOrEqual(4);
  }
});
