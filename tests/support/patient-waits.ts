import { vi } from 'vitest';

/**
 * How long every test waits for what must come, in ms. What comes is waited for no longer than it takes; what hangs fails
 * by this. So no test has to guess how fast a machine is: vitest and Testing Library would give up after a second.
 *
 * `expect.poll` has it from the configuration.
 */
const WAIT_MS = 30_000;

const PATIENT = Symbol.for('interlude.patient');

if (!Object.hasOwn(vi, PATIENT)) {
  const { waitFor, waitUntil } = vi;
  type Options = Parameters<typeof waitFor>[1];
  const patient = (options: Options) => (typeof options === 'number' ? options : { timeout: WAIT_MS, ...options });
  Object.assign(vi, {
    [PATIENT]: true,
    waitFor: (look: () => unknown, options?: Options) => waitFor(look, patient(options)),
    waitUntil: (look: () => unknown, options?: Options) => waitUntil(look, patient(options)),
  });
}

if (typeof document !== 'undefined') {
  const { configure } = await import('@testing-library/react');
  configure({ asyncUtilTimeout: WAIT_MS });
}
