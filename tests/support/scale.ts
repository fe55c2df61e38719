/** `quick`: `npm test`. `full`: `npm run test:all`. `soak`: `npm run test:soak`, which takes hours. */
export type Scale = 'quick' | 'full' | 'soak';

/** From INTERLUDE_TEST_SCALE. */
export const scale: Scale = scaleOf(process.env.INTERLUDE_TEST_SCALE ?? 'quick');

/** Returns `long` in a soak, otherwise `short`. */
export function scaled<Value>(short: Value, long: Value): Value {
  return scale === 'soak' ? long : short;
}

function scaleOf(name: string): Scale {
  if (name === 'quick' || name === 'full' || name === 'soak') return name;
  throw new Error(`INTERLUDE_TEST_SCALE is ${JSON.stringify(name)}. Set it to quick, full or soak.`);
}
