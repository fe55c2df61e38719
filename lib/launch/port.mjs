import { createServer } from 'node:net';
import { npmCommand } from '../runner/host/own-program.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { LaunchError } from './say.mjs';

/**
 * Finds out, before anything slow happens, whether the server will be able to listen, and holds the port for it.
 * Whoever connects before there is a server is hung up on.
 *
 * @param {string} host
 * @param {number} port 0 for any that is free
 * @returns {Promise<{ port: number, release(): Promise<void> }>} `release` it right before the server listens
 */
export function holdPort(host, port) {
  return new Promise((resolve, reject) => {
    const holder = createServer((socket) => socket.destroy());
    holder.once('error', (error) => reject(new LaunchError(listenError(errorCode(error), host, port))));
    holder.listen({ host, port, exclusive: true }, () => {
      holder.unref();
      /** @type {() => Promise<void>} */
      const release = () => new Promise((released) => holder.close(() => released()));
      resolve({ port: /** @type {import('node:net').AddressInfo} */ (holder.address()).port, release });
    });
  });
}

/**
 * @param {string | undefined} code
 * @param {string} host
 * @param {number} port
 */
export function listenError(code, host, port) {
  if (code === 'EADDRINUSE') {
    return `port ${port} is in use on ${host}; stop what uses it, or choose another with PORT or "${npmCommand(['start', '--', '--port'])} N"`;
  }
  if (code === 'EACCES') return `this user may not listen on port ${port}; choose one above 1023 with PORT`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${host} is not an address of this machine; set HOST to one that is`;
  return `the server can't listen on ${host}:${port} (${code})`;
}
