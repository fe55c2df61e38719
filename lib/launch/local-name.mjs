import { randomInt } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { errorCode } from '../runner/host/system-error.mjs';

const LETTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const LENGTH = 8;

/**
 * The name below `localhost` at which browsers on this machine sign in. A cookie goes to every port of its host, so that
 * a name which others could guess would lead it to whatever listens on another port: it is made once, and kept where the
 * tokens are.
 *
 * @param {string} dataDir
 * @param {NodeJS.ProcessEnv} env
 * @returns {string} '' for none
 */
export function readOrMakeLocalName(dataDir, env) {
  if (env.INTERLUDE_LOCAL_NAME !== undefined) return env.INTERLUDE_LOCAL_NAME;
  const file = join(dataDir, 'local-name');
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const letters = Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('');
    // `wx`: of two that start at once, one makes it and both read it
    writeFileSync(file, `interlude-${letters}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    // where nothing can be kept there is no such name: whoever has to write there says what to do
    if (errorCode(error) !== 'EEXIST') return '';
  }
  return readFileSync(file, 'utf8').trim();
}

/**
 * Browsers look for a name below `localhost` at ::1 first, and then at 127.0.0.1. Whoever listens on the former would be
 * given what is meant for us.
 *
 * @param {string} host where the server listens
 * @param {number} port
 * @returns {Promise<'ours' | 'nobody’s' | 'somebody else’s'>} whose ::1 is on that port: ours to listen on, or there is
 *   no such address on this machine
 */
export function ipv6Loopback(host, port) {
  if (host === '::' || host === '::1') return Promise.resolve('nobody’s');
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', (error) => resolve(errorCode(error) === 'EADDRINUSE' ? 'somebody else’s' : 'nobody’s'));
    probe.listen({ host: '::1', port, exclusive: true }, () => probe.close(() => resolve('ours')));
  });
}
