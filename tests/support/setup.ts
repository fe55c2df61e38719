import { vi } from 'vitest';
import { WAIT_MS } from './timeouts';

/** vitest and Testing Library would give up after a second. `expect.poll` has it from the configuration. */
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

/**
 * Pages under test have no server: a request that no test answers is never answered. What a page still asks for when its
 * test is over would otherwise fail at a port of this machine, and tell a page that is gone.
 */
if (typeof document !== 'undefined') {
  globalThis.fetch = (_input, init) =>
    new Promise((_, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
    });
}
