'use client';

import { MINUTE_MS } from '@interlude/protocol/limits';
import type { Activity, DurationStep } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { useTheme } from 'next-themes';
import { type ReactNode, useEffect, useMemo, useRef } from 'react';
import UPlot from 'uplot';
import { fetchJson } from '@/components/live/fetch-json';
import { plural } from '@/components/ui/duration';
import 'uplot/dist/uPlot.min.css';

const AGAIN_MS = 15_000;
/** Minutes between time labels. */
const LABEL_EVERY = 15;

/** Recent activity: events per minute, task durations and reply times. */
export function FleetCharts() {
  const { data, error } = useQuery({
    queryKey: ['activity'],
    queryFn: ({ signal }) => fetchJson<Activity>('/activity', signal),
    refetchInterval: AGAIN_MS,
  });
  if (data === undefined) {
    return (
      <p role="status" className="min-h-44 py-2 text-2xs text-ink-3">
        {error === null ? 'Loading…' : `Activity could not be loaded: ${error.message}`}
      </p>
    );
  }
  return (
    <div className="grid min-h-44 gap-x-8 gap-y-4 @2xl:grid-cols-2 @5xl:grid-cols-[2fr_1fr_1fr] @2xl:@max-5xl:[&>:first-child]:col-span-2">
      <EventsPerMinute activity={data} />
      <Durations title="How long tasks ran" steps={data.tasks} one="task" none="No tasks have ended yet." />
      <Durations title="Time to answer" steps={data.answers} one="reply" many="replies" none="No replies yet." />
    </div>
  );
}

function EventsPerMinute({ activity: { events, since } }: { activity: Activity }) {
  const times = useMemo(() => events.map((_, at) => clock(since + at * MINUTE_MS)), [events, since]);
  const labels = useMemo(() => times.map((time, at) => (at % LABEL_EVERY === 0 ? time : '')), [times]);
  const total = events.reduce((sum, count) => sum + count, 0);
  const most = Math.max(...events);
  const now = events.length - 1;
  // The last minute is still open.
  const names = useMemo(() => times.map((time, at) => (at === now ? `${time}, so far` : time)), [times, now]);
  const span = events.length === 60 ? 'hour' : plural(events.length, 'minute');
  const soFar = (events[now] ?? 0).toLocaleString('en');
  const summary = `${plural(total, 'event')} in the last ${span} · peak ${most.toLocaleString('en')}/min · ${soFar} this minute`;
  return (
    <Chart title="Events per minute" summary={summary} head={['Minute', 'Events']} names={names} values={events}>
      <BarChart labels={labels} values={events} lastIsOpen />
    </Chart>
  );
}

function Durations(props: { title: string; steps: readonly DurationStep[]; one: string; many?: string; none: string }) {
  const { title, steps, one, many, none } = props;
  const names = useMemo(() => steps.map(stepName), [steps]);
  const values = useMemo(() => steps.map(({ count }) => count), [steps]);
  const total = values.reduce((sum, count) => sum + count, 0);
  if (total === 0) {
    return (
      <section aria-label={title} className="text-xs">
        <h3 className="font-medium">{title}</h3>
        <p className="py-2 text-2xs text-ink-3">{none}</p>
      </section>
    );
  }
  const summary = `the last ${plural(total, one, many)}`;
  return (
    <Chart
      title={title}
      summary={summary}
      head={['Took', one === 'task' ? 'Tasks' : 'Replies']}
      names={names}
      values={values}
    >
      <BarChart labels={names} values={values} />
    </Chart>
  );
}

/** A chart with its values as a table. */
function Chart(props: {
  title: string;
  summary: string;
  head: readonly [string, string];
  names: readonly string[];
  values: readonly number[];
  children: ReactNode;
}) {
  const { title, summary, head, names, values, children } = props;
  return (
    <section aria-label={title} className="min-w-0 text-xs">
      <h3 className="flex flex-wrap items-baseline gap-x-2 font-medium">
        {title}
        <span className="tabular font-normal text-2xs text-ink-3">{summary}</span>
      </h3>
      {children}
      <details className="text-2xs text-ink-3">
        <summary className="w-fit cursor-pointer py-1 hover:text-ink">Figures</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <div tabIndex={0} className="max-h-40 overflow-y-auto">
          <table className="tabular w-full max-w-60">
            <thead>
              <tr>
                <th scope="col" className="py-0.5 text-left font-normal">
                  {head[0]}
                </th>
                <th scope="col" className="py-0.5 text-right font-normal">
                  {head[1]}
                </th>
              </tr>
            </thead>
            <tbody>
              {names.map((name, at) => (
                <tr key={name} className="text-ink-2">
                  <th scope="row" className="text-left font-normal">
                    {name}
                  </th>
                  <td className="text-right">{(values[at] ?? 0).toLocaleString('en')}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}

function clock(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

/** `< 1s`, `1–10s`, `10m–1h`, `≥ 1h` */
function stepName({ fromMs, toMs }: DurationStep): string {
  if (toMs === null) return `≥ ${short(fromMs)}`;
  return fromMs === 0 ? `< ${short(toMs)}` : `${short(fromMs)}–${short(toMs)}`;
}

function short(ms: number): string {
  if (ms >= 3_600_000) return `${ms / 3_600_000}h`;
  return ms >= 60_000 ? `${ms / 60_000}m` : `${ms / 1_000}s`;
}

/** Steps below the last tick; more labels don't fit. */
const MOST_STEPS = 3;
const LEADING = [1, 2, 5];

/**
 * Ticks of a count axis: whole steps from zero. The last tick is above the highest count, so no bar looks cut off.
 */
export function countTicks(most: number): number[] {
  for (let power = 1; ; power *= 10) {
    for (const leading of LEADING) {
      const step = leading * power;
      const steps = Math.floor(most / step) + 1;
      if (steps <= MOST_STEPS) return Array.from({ length: steps + 1 }, (_, at) => at * step);
    }
  }
}

const HEIGHT = 110;
/**
 * Counts as bars. Hidden from screen readers, which get the table of values.
 *
 * @param labels labels below the bars; empty for none
 * @param lastIsOpen draws the last bar as an outline, because it is still growing
 */
export function BarChart(props: { labels: readonly string[]; values: readonly number[]; lastIsOpen?: boolean }) {
  const { labels, values, lastIsOpen = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const { resolvedTheme } = useTheme();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the chart uses the theme's colours
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const chart = new UPlot(
      optionsOf(element, labels, countTicks(Math.max(...values))),
      dataOf(values, lastIsOpen),
      element,
    );
    const size = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }));
    size.observe(element);
    return () => {
      size.disconnect();
      chart.destroy();
    };
  }, [labels, values, lastIsOpen, resolvedTheme]);
  return <div ref={box} aria-hidden="true" className="min-w-0 overflow-hidden" style={{ height: HEIGHT }} />;
}

function dataOf(values: readonly number[], lastIsOpen: boolean): UPlot.AlignedData {
  const isOpen = (at: number) => lastIsOpen && at === values.length - 1;
  return [
    values.map((_, at) => at),
    values.map((count, at) => (isOpen(at) ? null : count)),
    values.map((count, at) => (isOpen(at) ? count : null)),
  ];
}

function optionsOf(element: HTMLElement, labels: readonly string[], ticks: number[]): UPlot.Options {
  const colour = (name: string) => getComputedStyle(element).getPropertyValue(name).trim();
  const font = `10px ${getComputedStyle(element).fontFamily}`;
  const bars = { points: { show: false }, paths: UPlot.paths.bars?.({ size: [0.8, 40], align: 0 }) };
  const axis = { stroke: colour('--ink-3'), font, ticks: { show: false }, gap: 3 };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: [-0.6, labels.length - 0.4] },
      // Starts at zero, so small differences don't look large.
      y: { range: [0, ticks.at(-1) ?? 1] },
    },
    axes: [
      {
        ...axis,
        size: 18,
        grid: { show: false },
        splits: () => labels.flatMap((label, at) => (label === '' ? [] : [at])),
        values: (_, splits) => splits.map((at) => labels[at] ?? ''),
      },
      {
        ...axis,
        size: 40,
        splits: ticks,
        grid: { stroke: colour('--line'), width: 1 },
        values: (_, splits) => splits.map((count) => count.toLocaleString('en', { notation: 'compact' })),
      },
    ],
    series: [
      {},
      { ...bars, fill: colour('--ink-2'), width: 0 },
      { ...bars, fill: colour('--ground'), stroke: colour('--ink-2'), width: 1 },
    ],
  };
}
