const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const two = (value: number) => String(value).padStart(2, '0');

/**
 * `0:03`, `12:04`, `1:02:33`, and from a day on `3d 01:02`. Clamped at zero, because two machines' clocks may differ.
 */
export function formatClock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / SECOND));
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  if (hours >= 24) return `${Math.floor(hours / 24)}d ${two(hours % 24)}:${two(minutes)}`;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** `now`, `12s`, `3m`, `2h`, `5d`. */
export function formatAgo(ms: number): string {
  const span = Math.max(0, ms);
  if (span < 5 * SECOND) return 'now';
  if (span < MINUTE) return `${Math.floor(span / SECOND)}s`;
  if (span < HOUR) return `${Math.floor(span / MINUTE)}m`;
  if (span < DAY) return `${Math.floor(span / HOUR)}h`;
  return `${Math.floor(span / DAY)}d`;
}

/** `just now`, `12 s ago`, `3 min ago`, `2 h 5 min ago`, `3 d 1 h ago`. */
export function formatAgoLong(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / SECOND));
  if (seconds < 1) return 'just now';
  if (seconds < 60) return `${seconds} s ago`;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours < 1) return `${minutes} min ago`;
  return hours < 24 ? `${hours} h ${minutes} min ago` : `${Math.floor(hours / 24)} d ${hours % 24} h ago`;
}

/** `1 hit`, `1,204 hits`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}
