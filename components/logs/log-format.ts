import type { LogMarker } from '@interlude/protocol/envelope';
import type { LogLine } from '@interlude/protocol/read-models';
import type { LogLevel } from '@interlude/protocol/vocabulary';
import { plural } from '@/components/ui/duration';
import { formatBinaryBytes } from '@/components/ui/format-size';

export const LEVEL_COLOUR: Record<LogLevel, string> = {
  debug: 'text-ink-3',
  info: 'text-ink-2',
  warn: 'text-waiting',
  error: 'text-failed',
  fatal: 'text-failed font-semibold',
};

/** The text of a marker. */
export function markerText(marker: LogMarker): string {
  if (marker.kind === 'retention') {
    return `${plural(marker.lines, 'older line')} removed by retention (${formatBinaryBytes(marker.bytes)})`;
  }
  const { level, previous, by } = marker;
  const who = by === 'time-limit' ? 'because its time limit expired' : `by ${by}`;
  return level === previous ? `level ${level}, ${who}` : `level ${previous} → ${level}, ${who}`;
}

/** The failed hook that a line reports, or null. */
export function failedHook({ level, component }: LogLine): string | null {
  return level === 'fatal' && component.startsWith('hook:')
    ? component.slice('hook:'.length).trim() || 'unknown'
    : null;
}

/** The line in the format of the runner's log file. */
export function plainLine({ occurredAt, level, component, message }: LogLine): string {
  const date = new Date(occurredAt);
  const time = Number.isNaN(date.getTime()) ? String(occurredAt) : date.toISOString();
  return `[${time}] ${level.toUpperCase().padEnd(5)} [${component}] ${message}`;
}
