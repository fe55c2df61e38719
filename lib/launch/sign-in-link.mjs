import { interludeCommand } from '../runner/shown-command.mjs';
import { askOwnServer } from './ask-own-server.mjs';

/**
 * What the terminal says of signing in. The link holds a code that is spent by its first use, and nothing that opens
 * anything afterwards: it may stay in the terminal and in the browser's history.
 *
 * @param {import('./ask-own-server.mjs').Own} own
 * @returns {Promise<string>}
 */
export async function signInLines(own) {
  const another = interludeCommand(['sign-in']);
  const { status, answer } = await askOwnServer(own, '/sign-in-codes', { body: {} });
  if (status === 201 && typeof answer.path === 'string') {
    return `  Sign in:  ${own.url}${answer.path}\n            good once, for 5 minutes; another: ${another}`;
  }
  const why = status === 0 ? 'the server is too busy to make a link' : 'the database does not take a sign-in link';
  return `  Sign in:  ${why}; once it does, this prints one: ${another}`;
}
