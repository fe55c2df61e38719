'use client';

import { useTheme } from 'next-themes';
import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { countTicks } from './count-ticks';

const HEIGHT = 110;
/**
 * Counts as bars from zero on. It shows what the figures beside it say, so that nobody has to read it.
 *
 * @param labels what stands beneath each bar; where there are many, beneath some
 * @param lastIsOpen whether the last one still grows: it is drawn as an outline, so that it looks like no fall
 */
export function BarChart(props: { labels: readonly string[]; values: readonly number[]; lastIsOpen?: boolean }) {
  const { labels, values, lastIsOpen = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const { resolvedTheme } = useTheme();
  // biome-ignore lint/correctness/useExhaustiveDependencies: drawn with the colours of the theme
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
      // An axis that begins above zero would make little differences look great.
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
