import { MAX_TIME } from './limits';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * A duration: `0.4 s`, `12 s`, `3 min`, `3 min 20 s`, `2 h 5 min`, `3 d 1 h`. Clamped at zero, because two machines'
 * clocks may differ.
 *
 * @param isRunning counts in whole seconds, and keeps a zero: `3 s`, `3 min 0 s`
 */
export function formatDuration(ms: number, isRunning = false): string {
  const span = Math.max(0, ms);
  if (span < 9_950 && !isRunning) return `${(span / SECOND).toFixed(1)} s`;
  if (span < MINUTE) return `${Math.floor(span / SECOND)} s`;
  if (span < HOUR) return inUnits(span, isRunning, [MINUTE, 'min'], [SECOND, 's']);
  if (span < DAY) return inUnits(span, isRunning, [HOUR, 'h'], [MINUTE, 'min']);
  return inUnits(span, isRunning, [DAY, 'd'], [HOUR, 'h']);
}

type Unit = readonly [ms: number, name: string];

function inUnits(span: number, keepsZero: boolean, [ms, name]: Unit, [smallMs, smallName]: Unit): string {
  const rest = Math.floor((span % ms) / smallMs);
  return `${Math.floor(span / ms)} ${name}${rest > 0 || keepsZero ? ` ${rest} ${smallName}` : ''}`;
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
