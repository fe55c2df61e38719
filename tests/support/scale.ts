import { TEST_MS } from './patience';

/** `quick`: `npm test`. `full`: `npm run test:all`. `soak`: `npm run test:soak`, which takes hours. */
export type Scale = 'quick' | 'full' | 'soak';

/** From INTERLUDE_TEST_SCALE. */
export const scale: Scale = scaleOf(process.env.INTERLUDE_TEST_SCALE ?? 'quick');

/** Returns `long` in a soak, otherwise `short`. */
export function scaled<Value>(short: Value, long: Value): Value {
  return scale === 'soak' ? long : short;
}

/** Milliseconds that a test with a long form may take. */
export const SCALED_TEST_MS = scaled(TEST_MS, 4 * 60 * 60_000);

function scaleOf(name: string): Scale {
  if (name === 'quick' || name === 'full' || name === 'soak') return name;
  throw new Error(`INTERLUDE_TEST_SCALE is ${JSON.stringify(name)}. Set it to quick, full or soak.`);
}
