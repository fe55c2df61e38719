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
