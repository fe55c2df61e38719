const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

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
