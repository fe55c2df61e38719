import type { SignInCode } from '@interlude/protocol/access';
import { formatSpan } from '@interlude/protocol/time';
import { interludeCommand } from '../host/own-program.mjs';
import type { Command } from './command';
import { EXIT, type ExitCode, printNotice, readFlags, SERVER_FLAGS, usageError } from './command';
import { requestJson, serverEndpoint } from './dashboard';

const HELP = `Usage: ${interludeCommand(['sign-in'])} [options]

Prints a link that signs a browser in as an admin. It works once, for 5 minutes, for the first person who opens it: don't
share it.

  --url URL        the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F   read the owner's token from this file; default: INTERLUDE_TOKEN, else this machine's

Exit codes: 0 printed the link on stdout, 1 failed, 2 usage.`;

export const command: Command = { help: HELP, run: signIn };

async function signIn(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { values, positionals } = readFlags('sign-in', argv, SERVER_FLAGS, env);
  if (positionals.length > 0) throw usageError('this command takes options only', 'sign-in');
  const endpoint = serverEndpoint(values, env, undefined, 'owner');
  const requestedAt = Date.now();
  const { path, expiresAt } = await requestJson<SignInCode>(endpoint, 'POST', '/sign-in-codes');
  const { url } = await endpoint();
  process.stdout.write(`${url.replace(/\/+$/, '')}${path}\n`);
  printNotice(`works once, for ${formatSpan(expiresAt - requestedAt)}`);
  return EXIT.done;
}
