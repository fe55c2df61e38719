import * as z from 'zod';
import { Position } from './field-schemas';

/** Recent activity of the fleet. Times are epoch milliseconds on the server's clock. */

/** Number of tasks, and of replies, that are measured: the newest. */
export const MAX_MEASURED = 500;

export const DurationStep = z
  .object({ fromMs: z.number(), toMs: z.number().nullable(), count: z.number() })
  .describe('A step of a histogram: durations from `fromMs` to below `toMs`; null: without limit.');
export type DurationStep = z.infer<typeof DurationStep>;

export const Activity = z.object({
  position: Position,
  at: z.number().describe('When it was read, on the server’s clock.'),
  since: z.number().describe('Start of the first minute in `events`.'),
  events: z.array(z.number()).describe('Events received in each minute from `since`; the last minute is not over.'),
  tasks: z.array(DurationStep).describe(`Durations of the last ended tasks, up to ${MAX_MEASURED}.`),
  answers: z.array(DurationStep).describe(`Waits for the last replies of people and agents, up to ${MAX_MEASURED}.`),
});
export type Activity = z.infer<typeof Activity>;

const STEPS_MS = [0, 1_000, 10_000, 60_000, 600_000, 3_600_000];

/** A histogram of durations in milliseconds. A negative duration, from a wrong clock, counts in the first step. */
export function durationSteps(durations: readonly number[]): DurationStep[] {
  return STEPS_MS.map((fromMs, at) => {
    const toMs = STEPS_MS[at + 1] ?? null;
    const count = durations.filter((ms) => (at === 0 || ms >= fromMs) && (toMs === null || ms < toMs)).length;
    return { fromMs, toMs, count };
  });
}
