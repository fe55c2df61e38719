import { randomInt } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { errorCode } from '../runner/system-error.mjs';

const LETTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const LENGTH = 8;

/**
 * The host name below `localhost` at which browsers on this machine sign in. Random and kept with the tokens: a cookie
 * goes to every port of its host, so that a guessable name would send it to other local servers.
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
    // `wx`: of two concurrent starts one creates it and both read it
    writeFileSync(file, `interlude-${letters}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    // without a writable folder there is no local name; the token's error says what to do
    if (errorCode(error) !== 'EEXIST') return '';
  }
  return readFileSync(file, 'utf8').trim();
}

/**
 * Tests ::1, which browsers try first for a name below `localhost`: another process that listens there would receive
 * our requests.
 *
 * @param {string} host where the server listens
 * @param {number} port
 * @returns {Promise<'free' | 'unavailable' | 'taken'>} free to listen on; absent or covered by `host`; taken by another
 * process
 */
export function ipv6Loopback(host, port) {
  if (host === '::' || host === '::1') return Promise.resolve('unavailable');
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', (error) => resolve(errorCode(error) === 'EADDRINUSE' ? 'taken' : 'unavailable'));
    probe.listen({ host: '::1', port, exclusive: true }, () => probe.close(() => resolve('free')));
  });
}
