import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataFolderError, readPrivate } from '../runner/host/data-folder.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { LaunchError } from './say.mjs';

const SHORTEST = 16;

/**
 * The secret of whoever Interlude belongs to: INTERLUDE_TOKEN, else the file in the data directory, which is made at the
 * first start. It opens everything, so it is printed nowhere, and stands in no address.
 *
 * @param {string} dataDir
 * @param {NodeJS.ProcessEnv} env
 * @returns {string}
 */
export function readOrMakeToken(dataDir, env) {
  if (env.INTERLUDE_TOKEN !== undefined && env.INTERLUDE_TOKEN !== '') {
    return long(env.INTERLUDE_TOKEN.trim(), 'INTERLUDE_TOKEN');
  }
  const file = join(dataDir, 'token');
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    // `wx`: of two that start at once, one makes it and both read it
    writeFileSync(file, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw LaunchError.ofWriting(error, dataDir, 'INTERLUDE_DATA_DIR');
  }
  try {
    return long(readPrivate(file).trim(), file);
  } catch (error) {
    if (error instanceof LaunchError || error instanceof DataFolderError) throw error;
    throw new LaunchError(`the token ${file} can't be read (${errorCode(error)}); delete it to get a new one`);
  }
}

/**
 * @param {string} token
 * @param {string} where
 */
function long(token, where) {
  if (token.length < SHORTEST) {
    throw new LaunchError(`the token in ${where} has ${token.length} characters; it needs at least ${SHORTEST}`);
  }
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new LaunchError(
    `the token in ${where} can't be sent in a header; it may hold letters, digits and punctuation of ASCII, no spaces`,
  );
}

/**
 * What the environment leaves to a file, as containers do with secrets: INTERLUDE_OIDC_CLIENT_SECRET_FILE.
 *
 * @param {Record<string, string | undefined>} env
 * @returns {Record<string, string>} what to add to it
 */
export function secretsFromFiles(env) {
  const file = env.INTERLUDE_OIDC_CLIENT_SECRET_FILE;
  if (!file || env.INTERLUDE_OIDC_CLIENT_SECRET) return {};
  try {
    return { INTERLUDE_OIDC_CLIENT_SECRET: readFileSync(file, 'utf8').trim() };
  } catch (error) {
    throw new LaunchError(
      `the file of INTERLUDE_OIDC_CLIENT_SECRET_FILE, ${file}, can't be read (${errorCode(error)})`,
    );
  }
}
