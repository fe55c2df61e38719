const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const two = (value: number) => String(value).padStart(2, '0');

/**
 * `0:03`, `12:04`, `1:02:33`, and from a day on `3 d 01:02`. Clamped at zero, because two machines' clocks may differ.
 */
export function formatClock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / SECOND));
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  if (hours >= 24) return `${Math.floor(hours / 24)} d ${two(hours % 24)}:${two(minutes)}`;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** An age in a column: `now`, `12 s`, `3 min`, `2 h`, `5 d`. */
export function formatAgo(ms: number): string {
  const span = Math.max(0, ms);
  if (span < 5 * SECOND) return 'now';
  if (span < MINUTE) return `${Math.floor(span / SECOND)} s`;
  if (span < HOUR) return `${Math.floor(span / MINUTE)} min`;
  if (span < DAY) return `${Math.floor(span / HOUR)} h`;
  return `${Math.floor(span / DAY)} d`;
}

/** The same age in a sentence: `just now`, `12 s ago`, `3 min ago`. */
export function formatAgoLong(ms: number): string {
  const age = formatAgo(ms);
  return age === 'now' ? 'just now' : `${age} ago`;
}

/** `1 hit`, `1,204 hits`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}
