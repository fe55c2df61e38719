/** `quick`: `npm test`. `full`: `npm run test:all`. `soak`: `npm run test:soak`, which takes hours. */
type Scale = 'quick' | 'full' | 'soak';

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

/**
 * Milliseconds that tests wait for an expected event. Waits end as soon as the event occurs; only hangs reach the
 * limit, so no test depends on the machine's speed. A wait with its own limit asserts that limit. The mutant run lowers
 * it through INTERLUDE_TEST_WAIT_MS, because most of its waits fail.
 */
export const WAIT_MS = Number(process.env.INTERLUDE_TEST_WAIT_MS ?? 180_000);

/** Milliseconds for a test or hook: long enough for a slow machine, and hours in a soak. */
export const TEST_MS = scaled(900_000, 4 * 60 * 60_000);

/** Several times the longest retry delay of an outbox or stream. */
const PATIENCE_MS = 240_000;

/** Awaits an event and fails with the current state on timeout, so that the message names the process that stalled. */
export async function withDeadline<Result>(standing: () => string, wait: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out after ${PATIENCE_MS / 1_000} s: ${standing()}`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([wait, patience]);
  } finally {
    clearTimeout(timer);
  }
}
