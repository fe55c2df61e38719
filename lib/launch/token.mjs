import { randomBytes, randomInt } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataFolderError, readPrivate } from '../runner/host/data-folder.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { LaunchError } from './launch-error.mjs';

const MIN_LENGTH = 16;
const LOCAL_NAME_LETTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const LOCAL_NAME_LENGTH = 8;

/**
 * The owner's token: INTERLUDE_TOKEN, or a file in the data folder that the first start creates. Grants everything, so
 * it is never printed or put in a URL.
 *
 * @param {string} dataDir
 * @param {NodeJS.ProcessEnv} env
 */
export function readOrMakeToken(dataDir, env) {
  if (env.INTERLUDE_TOKEN) return checkToken(env.INTERLUDE_TOKEN.trim(), 'INTERLUDE_TOKEN');
  const file = join(dataDir, 'token');
  try {
    createFile(dataDir, file, randomBytes(32).toString('base64url'));
  } catch (error) {
    throw LaunchError.ofWriting(error, dataDir, 'INTERLUDE_DATA_DIR');
  }
  try {
    return checkToken(readPrivate(file).trim(), file);
  } catch (error) {
    if (error instanceof LaunchError || error instanceof DataFolderError) throw error;
    throw new LaunchError(`can't read the token file ${file} (${errorCode(error)}); delete it to create a new token`);
  }
}

/** @param {string} token @param {string} where */
function checkToken(token, where) {
  if (token.length < MIN_LENGTH) {
    throw new LaunchError(
      `the token in ${where} has ${token.length} characters; use at least ${MIN_LENGTH}, such as the output of openssl rand -base64 32`,
    );
  }
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new LaunchError(
    `the token in ${where} can't be sent in a header; use ASCII letters, digits and punctuation without spaces`,
  );
}

/**
 * The host name below `localhost` at which browsers on this machine sign in. Random and stored with the tokens:
 * browsers send a cookie to every port of its host, so a guessable name would let other local servers receive it.
 *
 * @param {string} dataDir
 * @param {NodeJS.ProcessEnv} env
 * @returns {string} '' for none
 */
export function readOrMakeLocalName(dataDir, env) {
  if (env.INTERLUDE_LOCAL_NAME !== undefined) return env.INTERLUDE_LOCAL_NAME;
  const file = join(dataDir, 'local-name');
  const letter = () => LOCAL_NAME_LETTERS[randomInt(LOCAL_NAME_LETTERS.length)];
  try {
    createFile(dataDir, file, `interlude-${Array.from({ length: LOCAL_NAME_LENGTH }, letter).join('')}`);
  } catch {
    // without a writable folder there is no local name; the error about the token explains the fix
    return '';
  }
  return readFileSync(file, 'utf8').trim();
}

/**
 * Creates a private file unless it exists. Of two concurrent starts, one creates the file and both read it.
 *
 * @param {string} folder
 * @param {string} file
 * @param {string} line
 */
function createFile(folder, file, line) {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(file, `${line}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

/**
 * Reads secrets from files that the environment names, as is usual in containers: INTERLUDE_OIDC_CLIENT_SECRET_FILE.
 *
 * @param {Record<string, string | undefined>} env
 * @returns {Record<string, string>} variables to add
 */
export function secretsFromFiles(env) {
  const file = env.INTERLUDE_OIDC_CLIENT_SECRET_FILE;
  if (!file || env.INTERLUDE_OIDC_CLIENT_SECRET) return {};
  try {
    return { INTERLUDE_OIDC_CLIENT_SECRET: readFileSync(file, 'utf8').trim() };
  } catch (error) {
    throw new LaunchError(
      `can't read ${file} (${errorCode(error)}); set INTERLUDE_OIDC_CLIENT_SECRET_FILE to a readable file`,
    );
  }
}
