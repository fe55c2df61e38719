import { closeSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { NewToken, NewTokenRequest } from '@interlude/protocol/access';
import { removeLeftDrafts } from '../left-drafts.mjs';
import { interludeCommand } from '../shown-command.mjs';
import { errorCode } from '../system-error.mjs';
import { askServer } from './ask-server';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { readFlags, SERVER_FLAGS, TEXT } from './flags';
import { serverEndpoint } from './local-server';
import { say } from './say';

const ROLES = ['runner', 'viewer', 'operator', 'admin', 'issuer'] as const;
const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
const LONGEST_MS = 10 * 366 * UNITS.d;

/** `interlude tokens create`: the token alone is on stdout, or in its file. */
export async function createToken(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { asked, out, server } = readOptions(argv, env);
  const endpoint = serverEndpoint(server, env, undefined, 'owner');
  // Before the token is made: nobody is told it a second time.
  const file = out === undefined ? null : draftOf(resolve(out));
  try {
    const { token, credential } = await askServer<NewToken>(endpoint, 'POST', '/tokens', asked);
    if (file === null) process.stdout.write(`${token}\n`);
    else file.keep(`${token}\n`);
    const where = file === null ? 'it is not shown again' : `it is in ${file.path}`;
    say(`${credential.name}: ${where}; to end it: ${interludeCommand(['tokens', 'revoke', credential.id])}`);
    if (credential.role === 'runner') say('give it to the runner with --token-file FILE, or in INTERLUDE_TOKEN');
    return EXIT.done;
  } finally {
    file?.discard();
  }
}

/** A file that only its owner can read, in whose place nothing changes until it is kept. */
function draftOf(path: string): { path: string; keep(text: string): void; discard(): void } {
  const draft = `${path}.${process.pid}.new`;
  removeLeftDrafts(path, /^(\d+)\.new$/);
  try {
    closeSync(openSync(draft, 'wx', 0o600));
  } catch (error) {
    throw new CliError(EXIT.failed, `${path} can’t be written (${errorCode(error)}); name another file with --out`);
  }
  return {
    path,
    keep(text) {
      writeFileSync(draft, text);
      renameSync(draft, path);
    },
    discard: () => rmSync(draft, { force: true }),
  };
}

function readOptions(argv: string[], env: Record<string, string | undefined>) {
  const flags = { agent: TEXT, 'agent-prefix': TEXT, role: TEXT, name: TEXT, expires: TEXT, out: TEXT };
  const { values, positionals } = readFlags('tokens', argv, { ...flags, ...SERVER_FLAGS }, env);
  if (positionals.length > 0) throw usageError('"create" takes options only', 'tokens');
  const { agent, 'agent-prefix': agentPrefix, name, expires, out } = values;
  const role = ROLES.find((one) => one === (values.role ?? 'runner'));
  if (role === undefined) throw usageError(`--role is one of ${ROLES.join(', ')}`, 'tokens');
  if (role === 'runner' && agent === undefined && agentPrefix === undefined) {
    throw usageError('say for which agent: --agent ID, or --agent-prefix P for all whose ids begin with P', 'tokens');
  }
  const asked: NewTokenRequest = {
    role,
    ...(agent === undefined ? {} : { agent }),
    ...(agentPrefix === undefined ? {} : { agentPrefix }),
    ...(name === undefined ? {} : { name }),
    ...(expires === undefined ? {} : { expiresAt: Date.now() + durationMs(expires) }),
  };
  return { asked, out, server: values };
}

function durationMs(text: string): number {
  const [, count, unit = 'd'] = /^(\d{1,5})([mhdw])$/.exec(text) ?? [];
  const ms = Number(count) * UNITS[unit as keyof typeof UNITS];
  if (ms > 0 && ms <= LONGEST_MS) return ms;
  throw usageError('--expires is a time like 30m, 12h, 90d or 52w, at most 10 years', 'tokens');
}
