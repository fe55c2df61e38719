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
 * How long every test waits for what must come, in ms. What comes is waited for no longer than it takes; what hangs fails
 * by this. So no test has to guess how fast a machine is. A wait with a limit of its own says that something is there by
 * then. The run of mutants sets it lower, through INTERLUDE_TEST_WAIT_MS: most of those waits end in nothing.
 */
export const WAIT_MS = Number(process.env.INTERLUDE_TEST_WAIT_MS ?? 60_000);

/**
 * How long a test or a hook may take, in ms: what hangs ends by it, and what is slow on a busy machine does not. Long
 * forms take hours.
 */
export const TEST_MS = scaled(300_000, 4 * 60 * 60_000);

/** Longer than the longest wait between two tries of an outbox or a stream, several times over. */
const PATIENCE_MS = 120_000;

/**
 * Waits for something that must come soon, and says where it stands when it does not: a test that merely times out
 * tells nobody who of many processes it was that stood still.
 */
export async function withDeadline<Result>(standing: () => string, wait: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`nothing came for ${PATIENCE_MS / 1_000} s: ${standing()}`)),
      PATIENCE_MS,
    );
  });
  try {
    return await Promise.race([wait, patience]);
  } finally {
    clearTimeout(timer);
  }
}
