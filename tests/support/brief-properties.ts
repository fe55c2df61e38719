import type * as FastCheck from 'fast-check';
import { vi } from 'vitest';

/** Each run needs an emptied database of its server, which takes a while: so there are fewer of them. */
const SHARE = 6;

type Parameters = FastCheck.Parameters<unknown>;

vi.mock('fast-check', async (original) => {
  const module = await original<typeof FastCheck>();
  const assert = (property: FastCheck.IRawProperty<unknown>, { numRuns = 100, ...parameters }: Parameters = {}) =>
    module.assert(property, { ...parameters, numRuns: Math.ceil(numRuns / SHARE) });
  return { ...module, assert, default: { ...module.default, assert } };
});
