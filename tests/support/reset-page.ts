import { afterAll, afterEach, beforeEach } from 'vitest';
import type { LiveConnection as Connection } from '@/components/live/live-connection';

/** Open connections, kept on the class. */
const CONNECTIONS = Symbol.for('interlude.connections');

/**
 * A setup file that resets page state between tests with a DOM, because test files of a worker share modules.
 *
 * A live connection lingers for 20 s after its last reader. Otherwise it would request a stream from the next tests'
 * server and, once refused, stop their clocks.
 */
if (typeof document !== 'undefined') {
  const { cleanup } = await import('@testing-library/react');
  const { LiveConnection } = await import('@/components/live/live-connection');
  const { setPerson } = await import('@/components/ui/browser-storage');
  const { freezeClocks } = await import('@/components/ui/clock');
  // The hub loads on demand. Preloading it keeps its first connection from starting after a short test has ended.
  await import('@/components/live/port-hub');
  const { setImmediate: begin } = globalThis;
  const nextTurn = () => new Promise<void>((resolve) => begin(resolve));

  const connections = collectedFrom(LiveConnection);

  const endPage = () => {
    for (const connection of connections) connection.close();
    connections.clear();
    freezeClocks(null);
    setPerson('ada');
    document.documentElement.removeAttribute('data-stale');
  };

  afterEach(async () => {
    cleanup();
    // Pages and connections exchange messages, delivered in the next turn of the event loop.
    await nextTurn();
    endPage();
    await nextTurn();
  });
  beforeEach(endPage);
  afterAll(() => {
    setPerson(null);
    localStorage.clear();
    sessionStorage.clear();
    history.replaceState(null, '', '/');
  });
}

/** Setup files run once per test file, while the class is shared unless modules are reset. */
function collectedFrom({
  prototype,
}: {
  prototype: Connection & { [CONNECTIONS]?: Set<Connection> };
}): Set<Connection> {
  const known = prototype[CONNECTIONS];
  if (known !== undefined) return known;
  const connections = new Set<Connection>();
  const { subscribe } = prototype;
  prototype[CONNECTIONS] = connections;
  prototype.subscribe = function subscribeAndCollect(...given) {
    connections.add(this);
    return subscribe.apply(this, given);
  };
  return connections;
}
