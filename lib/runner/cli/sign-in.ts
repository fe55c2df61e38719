import type { SignInCode } from '@interlude/protocol/access';
import { formatSpan } from '@interlude/protocol/time';
import { interludeCommand } from '../shown-command.mjs';
import { askServer } from './ask-server';
import type { Command } from './command';
import { EXIT, type ExitCode, usageError } from './exit';
import { readFlags, SERVER_FLAGS } from './flags';
import { serverEndpoint } from './local-server';
import { say } from './say';

const HELP = `Usage: ${interludeCommand(['sign-in'])} [options]

Prints a link that signs a browser in as an admin. It is good once, for 5 minutes. Whoever opens it first is signed in, so
don't send it where others read.

  --url URL       the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F  a file with its owner's token; default: INTERLUDE_TOKEN, else the one of this machine

Exit codes: 0 the link is on stdout, 1 failed, 2 usage.`;

export const command: Command = { help: HELP, run: signIn };

async function signIn(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { values, positionals } = readFlags('sign-in', argv, SERVER_FLAGS, env);
  if (positionals.length > 0) throw usageError('it takes options only', 'sign-in');
  const endpoint = serverEndpoint(values, env, undefined, 'owner');
  const askedAt = Date.now();
  const { path, expiresAt } = await askServer<SignInCode>(endpoint, 'POST', '/sign-in-codes');
  const { url } = await endpoint();
  process.stdout.write(`${url.replace(/\/+$/, '')}${path}\n`);
  say(`good once, for ${formatSpan(expiresAt - askedAt)}`);
  return EXIT.done;
}
