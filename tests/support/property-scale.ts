import type * as FastCheck from 'fast-check';
import { vi } from 'vitest';

type Parameters = FastCheck.Parameters<unknown>;

/** Factor on a property's run count, and the fixed seed of `npm test` for reproducible failures. */
const SCALES: Record<string, { factor: number; seed?: number }> = {
  quick: { factor: 1 / 6, seed: 1 },
  full: { factor: 1 },
  soak: { factor: 20 },
};

/** Emptying a libSQL server before each run takes longer than most runs. */
const SERVER_FACTOR = 1 / 6;

vi.mock('fast-check', async (original) => {
  const module = await original<typeof FastCheck>();
  const { factor, ...seed } = SCALES[process.env.INTERLUDE_TEST_SCALE ?? 'quick'] ?? { factor: 1 };
  const scale = factor * (process.env.INTERLUDE_TEST_SERVERS ? SERVER_FACTOR : 1);
  const assert = (property: FastCheck.IRawProperty<unknown>, { numRuns = 100, ...parameters }: Parameters = {}) =>
    module.assert(property, { ...seed, ...parameters, numRuns: Math.ceil(numRuns * scale) });
  return { ...module, assert, default: { ...module.default, assert } };
});
