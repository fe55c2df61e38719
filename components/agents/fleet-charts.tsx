'use client';

import { MINUTE_MS } from '@interlude/protocol/limits';
import type { Activity, DurationStep } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { memo, type ReactNode } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { plural } from '@/components/ui/duration';
import { timeFormat, useTimeFormat } from '@/components/ui/time-format';
import { BarChart } from './bar-chart';

const AGAIN_MS = 15_000;
/** Minutes between time labels. */
const LABEL_EVERY = 15;

/** Recent activity: events per minute, task durations and reply times. */
export const FleetCharts = memo(function FleetCharts() {
  const { data, error } = useQuery({
    queryKey: ['activity'],
    queryFn: ({ signal }) => fetchJson<Activity>('/activity', signal),
    refetchInterval: AGAIN_MS,
  });
  if (data === undefined) {
    return (
      <p role="status" className="py-2 text-2xs text-ink-3">
        {error === null ? 'Loading…' : `Activity could not be loaded: ${error.message}`}
      </p>
    );
  }
  return (
    <div className="@container">
      <div className="grid gap-x-8 gap-y-5 @lg:grid-cols-2 @4xl:grid-cols-[2fr_1fr_1fr] @lg:@max-4xl:[&>:first-child]:col-span-2">
        <EventsPerMinute activity={data} />
        <Durations title="How long tasks ran" steps={data.tasks} one="task" none="No tasks have ended yet." />
        <Durations title="Time to answer" steps={data.answers} one="reply" many="replies" none="No replies yet." />
      </div>
    </div>
  );
});

function EventsPerMinute({ activity: { events, since } }: { activity: Activity }) {
  const format = useTimeFormat() ?? timeFormat();
  const times = events.map((_, index) => format.time(since + index * MINUTE_MS));
  const total = events.reduce((sum, count) => sum + count, 0);
  const now = events.length - 1;
  const span = events.length === 60 ? 'hour' : plural(events.length, 'minute');
  if (total === 0) return <Chart title="Events per minute" none={`No events in the last ${span}.`} />;
  const peak = Math.max(...events).toLocaleString('en');
  const soFar = (events[now] ?? 0).toLocaleString('en');
  return (
    <Chart
      title="Events per minute"
      summary={`${plural(total, 'event')} in the last ${span} · peak ${peak}/min · ${soFar} this minute`}
    >
      <BarChart
        labels={times.map((time, index) => (index % LABEL_EVERY === 0 ? time : ''))}
        values={events}
        lastIsOpen
      />
      <details className="text-2xs text-ink-3">
        <summary className="w-fit cursor-pointer py-1 hover:text-ink">Figures</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <div tabIndex={0} className="max-h-40 overflow-y-auto">
          <table className="tabular w-full max-w-60">
            <thead>
              <tr>
                <th scope="col" className="py-0.5 text-left font-normal">
                  Minute
                </th>
                <th scope="col" className="py-0.5 text-right font-normal">
                  Events
                </th>
              </tr>
            </thead>
            <tbody>
              {times.map((time, index) => (
                <tr key={time} className="text-ink-2">
                  <th scope="row" className="text-left font-normal">
                    {/* The last minute is still open. */}
                    {index === now ? `${time}, so far` : time}
                  </th>
                  <td className="text-right">{(events[index] ?? 0).toLocaleString('en')}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </Chart>
  );
}

/** A histogram, as a list with bars. */
function Durations(props: { title: string; steps: readonly DurationStep[]; one: string; many?: string; none: string }) {
  const { title, steps, one, many, none } = props;
  const total = steps.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return <Chart title={title} none={none} />;
  const most = Math.max(...steps.map(({ count }) => count));
  return (
    <Chart title={title} summary={`the last ${plural(total, one, many)}`}>
      <ul className="tabular pt-2 text-2xs text-ink-2">
        {steps.map((step) => (
          <li key={step.fromMs} className="flex items-center gap-2 py-px">
            <span className="w-[15ch] shrink-0">{stepName(step)}</span>
            <span aria-hidden="true" className="h-1.5 flex-1 bg-raised">
              <span className="block h-full bg-ink-2" style={{ width: `${(100 * step.count) / most}%` }} />
            </span>
            <span className="w-[5ch] shrink-0 text-right">{step.count.toLocaleString('en')}</span>
          </li>
        ))}
      </ul>
    </Chart>
  );
}

function Chart(props: { title: string; summary?: string; none?: string; children?: ReactNode }) {
  const { title, summary, none, children } = props;
  return (
    <section aria-label={title} className="min-w-0 text-xs">
      <h3 className="flex flex-wrap items-baseline gap-x-2 font-medium">
        {title}
        <span className="tabular font-normal text-2xs text-ink-3">{summary ?? none}</span>
      </h3>
      {children}
    </section>
  );
}

function stepName({ fromMs, toMs }: DurationStep): string {
  if (toMs === null) return `over ${short(fromMs)}`;
  if (fromMs === 0) return `under ${short(toMs)}`;
  const [from, to] = [short(fromMs), short(toMs)];
  const [count, unit] = from.split(' ');
  return to.endsWith(` ${unit}`) ? `${count}–${to}` : `${from}–${to}`;
}

function short(ms: number): string {
  if (ms >= 3_600_000) return `${ms / 3_600_000} h`;
  return ms >= 60_000 ? `${ms / 60_000} min` : `${ms / 1_000} s`;
}
