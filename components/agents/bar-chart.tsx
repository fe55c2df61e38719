'use client';

import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import { useIsDark } from '@/components/ui/appearance';
import 'uplot/dist/uPlot.min.css';

/** Maximum number of steps below the last tick; more labels don't fit. */
const MAX_STEPS = 3;
const LEADING = [1, 2, 5];

/**
 * Ticks of a count axis: whole steps from zero. The last tick is above the highest count, so no bar looks cut off.
 */
export function countTicks(max: number): number[] {
  for (let power = 1; ; power *= 10) {
    for (const leading of LEADING) {
      const step = leading * power;
      const steps = Math.floor(max / step) + 1;
      if (steps <= MAX_STEPS) return Array.from({ length: steps + 1 }, (_, index) => index * step);
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
  const isDark = useIsDark();
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
  }, [labels, values, lastIsOpen, isDark]);
  return <div ref={box} aria-hidden="true" className="min-w-0 overflow-hidden" style={{ height: HEIGHT }} />;
}

function dataOf(values: readonly number[], lastIsOpen: boolean): UPlot.AlignedData {
  const isOpen = (at: number) => lastIsOpen && at === values.length - 1;
  return [
    values.map((_, index) => index),
    values.map((count, index) => (isOpen(index) ? null : count)),
    values.map((count, index) => (isOpen(index) ? count : null)),
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
        splits: () => labels.flatMap((label, index) => (label === '' ? [] : [index])),
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
