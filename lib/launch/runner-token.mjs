import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DataFolderError, readPrivate, removeStaleDrafts } from '../runner/host/data-folder.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { askOwnServer } from './ask-own-server.mjs';

/**
 * The token of the runners on this machine. They run under any agent's id, so it is for any agent: whoever can read it
 * could be any of them anyway. It can't do what the owner's token can: read sessions, answer requests, make tokens.
 *
 * Failure: a file that the server does not know (another database, a revoked token) is replaced. While the server can't
 * say, nothing is changed and it is asked again.
 */

const AGAIN_MS = 5_000;

/** @param {string} dataDir */
export function runnerTokenFile(dataDir) {
  return join(dataDir, 'runner-token');
}

/**
 * Resolves once the file has been looked at for the first time. What could not be done then is tried again.
 *
 * @param {string} dataDir
 * @param {import('./ask-own-server.mjs').Own} own
 */
export async function keepRunnerToken(dataDir, own) {
  const made = await ensureRunnerToken(runnerTokenFile(dataDir), own);
  if (made !== 'later') return;
  // a file of somebody else's was told of at the start, or is at the next
  setTimeout(() => void keepRunnerToken(dataDir, own).catch(() => {}), AGAIN_MS).unref();
}

/**
 * @param {string} file
 * @param {import('./ask-own-server.mjs').Own} own
 * @returns {Promise<'kept' | 'made' | 'later' | 'never'>}
 */
export async function ensureRunnerToken(file, own) {
  const before = contentOf(file);
  if (before !== '') {
    const { status } = await askOwnServer(own, '/me', { token: before });
    if (status === 200) return 'kept';
    if (status !== 401) return 'later';
  }
  const body = { role: 'runner', anyAgent: true, name: `Runners on ${hostname()}`.slice(0, 100) };
  const { status, answer } = await askOwnServer(own, '/tokens', { body });
  if (status !== 201 || typeof answer.token !== 'string') return 'later';
  // another server that shares the folder may have been quicker
  if (contentOf(file) !== before) {
    const { id } = /** @type {{ id: string }} */ (answer.credential);
    await askOwnServer(own, `/credentials/${id}`, { method: 'DELETE' });
    return await ensureRunnerToken(file, own);
  }
  const draft = `${file}.${process.pid}`;
  try {
    removeStaleDrafts(file);
    writeFileSync(draft, `${answer.token}\n`, { mode: 0o600 });
    renameSync(draft, file);
    return 'made';
  } catch (error) {
    rmSync(draft, { force: true });
    process.stderr.write(
      `interlude: ${file} can't be written (${errorCode(error)}); runners here need a token: see "tokens --help"\n`,
    );
    return 'never';
  }
}

/**
 * @param {string} file
 * @returns {string} the token in it; nothing if there is none
 */
function contentOf(file) {
  try {
    return readPrivate(file).trim();
  } catch (error) {
    if (error instanceof DataFolderError) throw error;
    return '';
  }
}
