import { interludeCommand } from '../runner/host/own-program.mjs';
import { askOwnServer } from './ask-own-server.mjs';

/**
 * The sign-in lines printed at the start: in a terminal, a single-use link; in a log, which more people read, only how to get
 * one.
 *
 * @param {import('./ask-own-server.mjs').Own} own
 * @param {boolean} isTerminal as `isTerminal` has it
 * @returns {Promise<string>}
 */
export async function signInLines(own, isTerminal) {
  const another = interludeCommand(['sign-in']);
  if (!isTerminal) return `  Sign in:  get a single-use link with\n    ${another}`;
  const { status, answer } = await askOwnServer(own, '/sign-in-codes', { body: {} });
  if (status === 201 && typeof answer.path === 'string') {
    return `  Sign in:  ${own.url}${answer.path}\n  It is good once, for 5 minutes. This prints another:\n    ${another}`;
  }
  const until = status === 0 ? 'the server is less busy' : 'its database answers';
  return `  Sign in:  no link can be made now. Once ${until}, this prints one:\n    ${another}`;
}

/**
 * Returns true if only the person who started the server reads its output. JSON is for a collector, also through a
 * terminal, as in a container that has one.
 *
 * @param {{ isTTY?: boolean }} output
 * @param {Record<string, string | undefined>} env
 */
export function isTerminal({ isTTY }, { INTERLUDE_LOG_FORMAT }) {
  return isTTY === true && INTERLUDE_LOG_FORMAT !== 'json';
}
