import { createServer } from 'node:net';
import { LaunchError } from './say.mjs';

/**
 * Finds out, before anything slow is done, whether the server will be able to listen.
 *
 * @param {string} host
 * @param {number} port 0 for any that is free
 * @returns {Promise<number>} the port
 */
export function freePort(host, port) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error) => reject(new LaunchError(listenError(error.code, host, port))));
    probe.listen({ host, port, exclusive: true }, () => {
      const { port: bound } = probe.address();
      probe.close(() => resolve(bound));
    });
  });
}

/**
 * @param {string} code
 * @param {string} host
 * @param {number} port
 */
export function listenError(code, host, port) {
  if (code === 'EADDRINUSE') {
    return `port ${port} is in use on ${host}; stop what uses it, or choose another with PORT or "npm start -- --port N"`;
  }
  if (code === 'EACCES') return `this user may not listen on port ${port}; choose one above 1023 with PORT`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `${host} is no address of this machine; set HOST to one`;
  return `the server can't listen on ${host}:${port} (${code})`;
}
