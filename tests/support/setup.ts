import { vi } from 'vitest';
import { WAIT_MS } from './timeouts';

/** Raises the one-second default timeouts of vitest and Testing Library. `expect.poll` is set in the configuration. */
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
 * Pages under test have no server, so unmocked requests stay pending. Otherwise a request made after a test would fail
 * at a local port and notify a removed page.
 */
if (typeof document !== 'undefined') {
  globalThis.fetch = (_input, init) =>
    new Promise((_, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
    });
}
