'use client';

import { MINUTE_MS } from '@interlude/protocol/limits';
import type { Activity, DurationStep } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { plural } from '@/components/ui/duration';
import { timeFormat, useTimeFormat } from '@/components/ui/time-format';
import { BarChart } from './bar-chart';

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
  const format = useTimeFormat() ?? timeFormat();
  const times = useMemo(
    () => events.map((_, index) => format.time(since + index * MINUTE_MS)),
    [events, since, format],
  );
  const labels = useMemo(() => times.map((time, index) => (index % LABEL_EVERY === 0 ? time : '')), [times]);
  const total = events.reduce((sum, count) => sum + count, 0);
  const peak = Math.max(...events);
  const now = events.length - 1;
  // The last minute is still open.
  const names = useMemo(() => times.map((time, index) => (index === now ? `${time}, so far` : time)), [times, now]);
  const span = events.length === 60 ? 'hour' : plural(events.length, 'minute');
  const soFar = (events[now] ?? 0).toLocaleString('en');
  const summary = `${plural(total, 'event')} in the last ${span} · peak ${peak.toLocaleString('en')}/min · ${soFar} this minute`;
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
              {names.map((name, index) => (
                <tr key={name} className="text-ink-2">
                  <th scope="row" className="text-left font-normal">
                    {name}
                  </th>
                  <td className="text-right">{(values[index] ?? 0).toLocaleString('en')}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
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
