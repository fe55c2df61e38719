'use client';

import { useTheme } from 'next-themes';
import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

const HEIGHT = 110;
/** Whole steps: nobody counts half an event. */
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000];

/**
 * Counts as bars from zero on. It shows what the figures beside it say, so that nobody has to read it.
 *
 * @param labels what stands beneath each bar; where there are many, beneath some
 */
export function BarChart({ labels, values }: { labels: readonly string[]; values: readonly number[] }) {
  const box = useRef<HTMLDivElement>(null);
  const { resolvedTheme } = useTheme();
  // biome-ignore lint/correctness/useExhaustiveDependencies: drawn with the colours of the theme
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const chart = new UPlot(optionsOf(element, labels), dataOf(values), element);
    const size = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }));
    size.observe(element);
    return () => {
      size.disconnect();
      chart.destroy();
    };
  }, [labels, values, resolvedTheme]);
  return <div ref={box} aria-hidden="true" className="min-w-0 overflow-hidden" style={{ height: HEIGHT }} />;
}

function dataOf(values: readonly number[]): UPlot.AlignedData {
  return [values.map((_, at) => at), [...values]];
}

function optionsOf(element: HTMLElement, labels: readonly string[]): UPlot.Options {
  const colour = (name: string) => getComputedStyle(element).getPropertyValue(name).trim();
  const font = `10px ${getComputedStyle(element).fontFamily}`;
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
      y: { range: (_, __, most) => [0, Math.max(1, most)] },
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
        incrs: STEPS,
        space: 28,
        grid: { stroke: colour('--line'), width: 1 },
        values: (_, splits) => splits.map((count) => count.toLocaleString('en', { notation: 'compact' })),
      },
    ],
    series: [
      {},
      {
        fill: colour('--ink-2'),
        width: 0,
        points: { show: false },
        paths: UPlot.paths.bars?.({ size: [0.8, 40], align: 0 }),
      },
    ],
  };
}
