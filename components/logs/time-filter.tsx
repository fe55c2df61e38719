'use client';

import { FilterPopover } from './filter-popover';
import { fieldTime, timeFromField } from './log-time';

const MINUTE_MS = 60_000;
const SPANS: [string, number][] = [
  ['Last 15 minutes', 15 * MINUTE_MS],
  ['Last hour', 60 * MINUTE_MS],
  ['Last 24 hours', 24 * 60 * MINUTE_MS],
];

/** From when to when, by the runner's clock. */
export function TimeFilter(props: {
  from: number | null;
  to: number | null;
  isUtc: boolean;
  onSpan: (from: number | null, to: number | null) => void;
}) {
  const { from, to, isUtc, onSpan } = props;
  const words = [from !== null && `from ${shortTime(from, isUtc)}`, to !== null && `to ${shortTime(to, isUtc)}`];
  const chosen = words.filter(Boolean).join(' ') || null;
  return (
    <FilterPopover label="Time" chosen={chosen}>
      <div className="flex flex-col gap-2">
        <TimeField label="From" at={from} isUtc={isUtc} onTime={(at) => onSpan(at, to)} />
        <TimeField label="To" at={to} isUtc={isUtc} onTime={(at) => onSpan(from, at)} />
        <div className="flex flex-wrap gap-x-4 gap-y-1 text-ink-2">
          {SPANS.map(([name, ms]) => (
            <button
              key={name}
              type="button"
              onClick={() => onSpan(Date.now() - ms, null)}
              className="underline decoration-line-strong underline-offset-2 hover:text-ink"
            >
              {name}
            </button>
          ))}
          {chosen !== null && (
            <button type="button" onClick={() => onSpan(null, null)} className="underline hover:text-ink">
              Any time
            </button>
          )}
        </div>
      </div>
    </FilterPopover>
  );
}

function TimeField(props: { label: string; at: number | null; isUtc: boolean; onTime: (at: number | null) => void }) {
  const { label, at, isUtc, onTime } = props;
  return (
    <label className="flex items-center gap-2">
      <span className="w-[5ch] text-ink-3">{label}</span>
      <input
        type="datetime-local"
        step={1}
        value={at === null ? '' : fieldTime(at, isUtc)}
        onChange={(event) => onTime(timeFromField(event.target.value, isUtc))}
        className="min-w-0 flex-1 rounded bg-raised px-1.5 py-1 font-mono"
      />
      <span className="text-2xs text-ink-3">{isUtc ? 'UTC' : 'local'}</span>
    </label>
  );
}

function shortTime(at: number, isUtc: boolean): string {
  return fieldTime(at, isUtc).slice(5).replace('T', ' ');
}
