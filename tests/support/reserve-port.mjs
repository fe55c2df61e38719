import { createServer } from 'node:net';

/**
 * Below the ephemeral range (from 32,768 on Linux, 49,152 elsewhere). The system may assign an ephemeral port to
 * another server while this one is down, or to a reconnecting client, which then connects to itself.
 */
const [FIRST, BLOCKS, PORTS_OF_A_BLOCK] = [11_000, 1_000, 20];

/** Concurrent processes have adjacent process ids, so each starts in a different block. */
let next = (process.pid % BLOCKS) * PORTS_OF_A_BLOCK;

/**
 * Returns a free port of 127.0.0.1 that can be closed and reopened.
 *
 * @returns {Promise<number>}
 */
export async function reservePort() {
  for (let tries = 0; tries < BLOCKS * PORTS_OF_A_BLOCK; tries++) {
    const port = FIRST + (next++ % (BLOCKS * PORTS_OF_A_BLOCK));
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${FIRST}`);
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
