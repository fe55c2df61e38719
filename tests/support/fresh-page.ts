import { afterAll, afterEach, beforeEach } from 'vitest';
import type { LiveConnection as Connection } from '@/components/live/live-connection';

/** The connections of a class that have not been ended yet. */
const CONNECTIONS = Symbol.for('interlude.connections');

/**
 * A set-up file: each test with a DOM is a page of its own, and leaves nothing to the tests after it, which share its
 * modules.
 *
 * A live connection goes on for 20 s after its last reader. It asked the next tests' server for a stream, and when it
 * was refused, it stopped their clocks.
 */
if (typeof document !== 'undefined') {
  const { cleanup } = await import('@testing-library/react');
  const { LiveConnection } = await import('@/components/live/live-connection');
  const { setPerson } = await import('@/components/ui/browser-storage');
  const { freezeClocks } = await import('@/components/ui/clock');
  // The hub comes on demand: without this, its first connection would begin after a short test has ended.
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
    // Pages and connections speak by messages, which a turn of the loop delivers.
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

/** This file runs once for each test file of a worker, and the class is the same in all of them, unless modules are reset. */
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
