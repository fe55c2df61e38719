import { MAX_TIME } from './limits';

/** In milliseconds, the largest first. */
const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const;

/**
 * A duration: `0.4 s`, `12 s`, `3 min`, `3 min 20 s`, `2 h 5 min`, `3 d 1 h`. Clamped at zero, because two machines'
 * clocks may differ.
 *
 * @param isRunning counts in whole seconds, and keeps a zero: `3 s`, `3 min 0 s`
 */
export function formatDuration(ms: number, isRunning = false): string {
  let rest = Math.max(0, ms);
  if (rest < 9_950 && !isRunning) return `${(rest / 1_000).toFixed(1)} s`;
  const parts = UNITS.filter(([unit, name]) => rest >= unit || name === 's')
    .slice(0, 2)
    .flatMap(([unit, name]) => {
      const count = Math.floor(rest / unit);
      rest %= unit;
      return count > 0 || isRunning ? `${count} ${name}` : [];
    });
  return parts.join(' ');
}

/** A duration in a sentence: `40 s`, `12 min`, `3 h`, `2 days`. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/**
 * Last moment for an answer to a request, on the server's clock. The agent's own wait is counted from when the request
 * arrived, so that clock differences never make the agent wait longer than it announced.
 *
 * @param expiresAt as the agent reported it
 * @returns null if the request does not expire, or reports an expiry before it was opened
 */
export function answerDeadline(expiresAt: unknown, opened: { occurredAt: number; receivedAt: number }): number | null {
  const { occurredAt, receivedAt } = opened;
  if (typeof expiresAt !== 'number' || !(expiresAt > occurredAt && expiresAt <= MAX_TIME)) return null;
  return Math.min(MAX_TIME, receivedAt + expiresAt - occurredAt);
}

/** Longest delay that still counts as on time: records wait in the outbox for a moment. */
const LATE_MS = 60_000;

/** True if the server received a record long after it happened. Both times must be on the same clock. */
export function isLate(occurredAt: number, receivedAt: number): boolean {
  return receivedAt - occurredAt > LATE_MS;
}
