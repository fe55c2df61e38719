import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DataFolderError, readPrivate, removeStaleDrafts } from '../runner/host/data-folder.mjs';
import { interludeCommand } from '../runner/host/own-program.mjs';
import { errorCode } from '../runner/host/system-error.mjs';

/**
 * The token of this machine's runners. Valid for any agent id, because every local runner can read it. Unlike the
 * owner's token it can't read sessions, answer requests or create tokens.
 *
 * Failure: a token that the server rejects (another database, revoked) is replaced. While the server doesn't answer,
 * the file stays and the check is retried.
 */

const RETRY_MS = 5_000;

/** @param {string} dataDir */
export function runnerTokenFile(dataDir) {
  return join(dataDir, 'runner-token');
}

/**
 * Resolves after the first check; retries later if the server didn't answer.
 *
 * @param {string} dataDir
 * @param {OwnServer} own
 */
export async function keepRunnerToken(dataDir, own) {
  const made = await ensureRunnerToken(runnerTokenFile(dataDir), own);
  if (made !== 'later') return;
  // start-up reports a file that belongs to another user
  setTimeout(() => void keepRunnerToken(dataDir, own).catch(() => {}), RETRY_MS).unref();
}

/**
 * @param {string} file
 * @param {OwnServer} own
 * @returns {Promise<'kept' | 'made' | 'later' | 'never'>}
 */
export async function ensureRunnerToken(file, own) {
  const before = contentOf(file);
  if (before !== '') {
    const { status } = await requestOwnServer(own, '/me', { token: before });
    if (status === 200) return 'kept';
    if (status !== 401) return 'later';
  }
  const body = { role: 'runner', anyAgent: true, name: `Runners on ${hostname()}`.slice(0, 100) };
  const { status, answer } = await requestOwnServer(own, '/tokens', { body });
  if (status !== 201 || typeof answer.token !== 'string') return 'later';
  // another server with this data folder wrote the file first
  if (contentOf(file) !== before) {
    const { id } = /** @type {{ id: string }} */ (answer.credential);
    await requestOwnServer(own, `/credentials/${id}`, { method: 'DELETE' });
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
      `interlude: can't write ${file} (${errorCode(error)}); create a token for the runners on this machine: see "tokens --help"\n`,
    );
    return 'never';
  }
}

/**
 * @param {string} file
 * @returns {string} its token; empty if there is none
 */
function contentOf(file) {
  try {
    return readPrivate(file).trim();
  } catch (error) {
    if (error instanceof DataFolderError) throw error;
    return '';
  }
}

const TIMEOUT_MS = 10_000;

/**
 * @typedef {object} OwnServer
 * @property {string} url
 * @property {string} token the owner's
 */

/**
 * Calls the server that this start-up has started.
 *
 * @param {OwnServer} own
 * @param {string} path below `/api/v1`
 * @param {{ method?: string, body?: object, token?: string }} [options] a body implies POST; `token` replaces the
 * owner's
 * @returns {Promise<{ status: number, answer: Record<string, unknown> }>} status 0 without a response
 */
async function requestOwnServer(
  own,
  path,
  { body, token = own.token, method = body === undefined ? 'GET' : 'POST' } = {},
) {
  try {
    const response = await fetch(`${own.url}/api/v1${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: 'manual',
    });
    return { status: response.status, answer: await response.json() };
  } catch {
    return { status: 0, answer: {} };
  }
}

/**
 * Sign-in lines of the start-up output: a single-use link on a terminal, but in a log, which more people read, only the
 * command that prints one.
 *
 * @param {OwnServer} own
 * @param {boolean} isTerminal
 * @returns {Promise<string>}
 */
export async function signInLines(own, isTerminal) {
  const another = interludeCommand(['sign-in']);
  if (!isTerminal) return `  Sign in:  get a single-use link with\n    ${another}`;
  const { status, answer } = await requestOwnServer(own, '/sign-in-codes', { body: {} });
  if (status === 201 && typeof answer.path === 'string') {
    return `  Sign in:  ${own.url}${answer.path}\n  The link works once, within 5 minutes. Print another with:\n    ${another}`;
  }
  const until = status === 0 ? 'the server is less busy' : 'its database answers';
  return `  Sign in:  can't create a link now. Once ${until}, print one with:\n    ${another}`;
}

/**
 * True if only the person who started the server reads its output. JSON output goes to a log collector, even on a
 * container's terminal.
 *
 * @param {{ isTTY?: boolean }} output
 * @param {Record<string, string | undefined>} env
 */
export function isTerminal({ isTTY }, { INTERLUDE_LOG_FORMAT }) {
  return isTTY === true && INTERLUDE_LOG_FORMAT !== 'json';
}
