import { createServer } from 'node:net';

/**
 * Below what systems hand out by themselves (from 32,768 on Linux, 49,152 elsewhere). A port they hand out is no port to
 * leave and come back to: another server is given it meanwhile, or a client that tries it again and again is given it as
 * its own, and is connected to itself.
 */
const [FIRST, BLOCKS, PORTS_OF_A_BLOCK] = [11_000, 1_000, 20];

/** Processes that run at the same time have process ids close to each other, so each looks in another block first. */
let next = (process.pid % BLOCKS) * PORTS_OF_A_BLOCK;

/**
 * A port of 127.0.0.1 that is free and stays ours when we stop listening on it for a while.
 *
 * @returns {Promise<number>}
 */
export async function reservePort() {
  for (let tries = 0; tries < BLOCKS * PORTS_OF_A_BLOCK; tries++) {
    const port = FIRST + (next++ % (BLOCKS * PORTS_OF_A_BLOCK));
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${FIRST} up is free`);
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
