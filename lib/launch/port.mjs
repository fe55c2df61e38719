import { createServer } from 'node:net';
import { startCommand } from '../runner/host/own-program.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { LaunchError } from './launch-error.mjs';

/**
 * Checks early that the server can listen, and holds the port until it does. Closes connections that arrive in the
 * meantime.
 *
 * @param {string} host
 * @param {number} port 0 for any free port
 * @returns {Promise<{ port: number, release(): Promise<void> }>} call `release` right before the server listens
 */
export function reservePort(host, port) {
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
    return `port ${port} is in use on ${host}; stop the other process, set PORT, or run "${startCommand(['--port'])} N"`;
  }
  if (code === 'EACCES') return `this user may not listen on port ${port}; set PORT to a port above 1023`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${host} is not an address of this machine; set HOST to a local address such as 127.0.0.1`;
  return `can't listen on ${host}:${port} (${code}); check HOST and PORT`;
}

/**
 * Tests ::1, which browsers try first for a name below `localhost`: another process that listens there would receive
 * our requests.
 *
 * @param {string} host where the server listens
 * @param {number} port
 * @returns {Promise<'free' | 'unavailable' | 'taken'>} `unavailable`: absent, or covered by `host`; `taken`: in use by
 * another process
 */
export function probeIpv6Loopback(host, port) {
  if (host === '::' || host === '::1') return Promise.resolve('unavailable');
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', (error) => resolve(errorCode(error) === 'EADDRINUSE' ? 'taken' : 'unavailable'));
    probe.listen({ host: '::1', port, exclusive: true }, () => probe.close(() => resolve('free')));
  });
}

/**
 * Replaces "all interfaces" with an address that clients can connect to.
 *
 * @param {string} host
 */
export function reachable(host) {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
