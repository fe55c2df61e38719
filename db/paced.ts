import { pause } from './next-turn';

/** Others get two thirds of the time, and on a slow machine what is done still keeps up. */
const PAUSE_RATIO = 2;
const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 40;

/** A slice of work that nobody waits for, and a pause after it. */
export async function paced(slice: () => Promise<void>): Promise<void> {
  const beganAt = performance.now();
  await slice();
  const pauseMs = (performance.now() - beganAt) * PAUSE_RATIO;
  await pause(Math.min(Math.max(pauseMs, MIN_PAUSE_MS), MAX_PAUSE_MS));
}
