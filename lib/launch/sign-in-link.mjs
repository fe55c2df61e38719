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
    return `  Sign in:  ${own.url}${answer.path}\n  It is good once, for 5 minutes. This prints another:\n    ${another}`;
  }
  const until = status === 0 ? 'the server is less busy' : 'its database answers';
  return `  Sign in:  no link can be made now. Once ${until}, this prints one:\n    ${another}`;
}
