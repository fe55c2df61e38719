const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long something took: `0.4 s`, `12 s`, `3 m 20 s`, `2 h 5 m`, `3 d 1 h`. */
export function formatDuration(ms: number): string {
  const span = Math.max(0, ms);
  if (span < 9_950) return `${(span / SECOND).toFixed(1)} s`;
  if (span < MINUTE) return `${Math.floor(span / SECOND)} s`;
  if (span < HOUR) return `${Math.floor(span / MINUTE)} m ${Math.floor((span % MINUTE) / SECOND)} s`;
  if (span < DAY) return `${Math.floor(span / HOUR)} h ${Math.floor((span % HOUR) / MINUTE)} m`;
  return `${Math.floor(span / DAY)} d ${Math.floor((span % DAY) / HOUR)} h`;
}

/** How long it was, as a sentence says it. */
export function spanOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}
