import type { Position } from './position';

/** What a fleet did lately. Times are epoch milliseconds on the server's clock. */

/** A step of a histogram: what took at least `fromMs`, and less than `toMs`; null: however long. */
export interface DurationStep {
  fromMs: number;
  toMs: number | null;
  count: number;
}

/** `GET /activity` */
export interface Activity {
  position: Position;
  /** When it was read, on the server's clock. */
  at: number;
  /** The first of the minutes below. */
  since: number;
  /** How many events came in each minute from `since` on; the last one is not over. */
  events: number[];
  /** How long the last tasks ran that have ended, up to MOST_MEASURED of them. */
  tasks: DurationStep[];
  /** How long people and agents waited for the last replies that were given, up to MOST_MEASURED of them. */
  answers: DurationStep[];
}

/** Of how many tasks, and of how many replies, it is told how long they took. */
export const MOST_MEASURED = 500;

const STEPS_MS = [0, 1_000, 10_000, 60_000, 600_000, 3_600_000];

/** How many of some durations, in milliseconds, are in each step. What counts as negative by a wrong clock is in the first. */
export function durationSteps(durations: readonly number[]): DurationStep[] {
  return STEPS_MS.map((fromMs, at) => {
    const toMs = STEPS_MS[at + 1] ?? null;
    const count = durations.filter((ms) => (at === 0 || ms >= fromMs) && (toMs === null || ms < toMs)).length;
    return { fromMs, toMs, count };
  });
}
