import type { LogMarker } from '@/lib/protocol/envelope';
import type { LogLevel } from '@/lib/protocol/log-levels';
import type { LogLine } from '@/lib/protocol/read-models';

export const LEVEL_COLOUR: Record<LogLevel, string> = {
  debug: 'text-ink-3',
  info: 'text-ink-2',
  warn: 'text-waiting',
  error: 'text-failed',
  fatal: 'text-failed font-semibold',
};

const NUMBER = new Intl.NumberFormat('en');

export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${NUMBER.format(count)} ${count === 1 ? one : many}`;
}

export function sizeOf(bytes: number): string {
  if (bytes < 1024) return countOf(bytes, 'byte');
  const units = ['KiB', 'MiB', 'GiB'];
  let [size, unit] = [bytes / 1024, 0];
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** What a place in the log stands for. */
export function markerWords(marker: LogMarker): string {
  if (marker.kind === 'retention') {
    return `${countOf(marker.lines, 'older line')} removed by retention (${sizeOf(marker.bytes)})`;
  }
  const { level, previous, by } = marker;
  const who = by === 'time-limit' ? 'as its time was up' : `by ${by}`;
  return level === previous ? `level ${level}, ${who}` : `level ${previous} → ${level}, ${who}`;
}

/** The hook whose failure a line tells, or null. */
export function failedHook({ level, component }: LogLine): string | null {
  return level === 'fatal' && component.startsWith('hook:')
    ? component.slice('hook:'.length).trim() || 'unknown'
    : null;
}

/** The line as it stands in the runner's own log file. */
export function plainLine({ occurredAt, level, component, message }: LogLine): string {
  const date = new Date(occurredAt);
  const time = Number.isNaN(date.getTime()) ? String(occurredAt) : date.toISOString();
  return `[${time}] ${level.toUpperCase().padEnd(5)} [${component}] ${message}`;
}
