import { closeSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CredentialList, CredentialSummary, NewToken, NewTokenRequest } from '@interlude/protocol/access';
import type { Scope } from '@interlude/protocol/scope';
import { removeStaleDrafts } from '../host/data-folder.mjs';
import { interludeCommand } from '../host/own-program.mjs';
import { errorCode } from '../host/system-error.mjs';
import {
  CliError,
  type Command,
  EXIT,
  type ExitCode,
  print,
  printNotice,
  readFlags,
  SERVER_FLAGS,
  SWITCH,
  TEXT,
  table,
  usageError,
} from './command';
import { requestJson, serverEndpoint } from './dashboard';

const HELP = `Usage: ${interludeCommand(['tokens'])} <create|list|revoke> [options]

Manages tokens for runners and other programs. A runner's token can send events and receive commands for its agents; it
can't read sessions, answer requests or create tokens.

  create                    create a token
         --agent ID         for the agent with this id; may be combined with --agent-prefix
         --agent-prefix P   for every agent whose id starts with this
         --role ROLE        runner (default), viewer, operator, admin, or issuer, which creates tokens for embeds. Without
                            an agent, every role except runner reaches everything
         --name N           show this name in lists and in the audit log
         --expires TIME     expire after 12h, 90d or 52w; default: never
         --out FILE         write the token to this file, readable by you only; default: print it on stdout
  list   [--all] [--json]   list valid tokens; with --all also revoked ones. "Last used" is up to a minute late
  revoke ID…                revoke tokens and close their connections, within two seconds

  --url URL                 the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F            read the owner's or an admin's token from this file; default: INTERLUDE_TOKEN, else this
                            machine's

Exit codes: 0 done, 1 failed, 2 usage.`;

type Environment = Record<string, string | undefined>;

export const command: Command = { help: HELP, run: tokens };

async function tokens([action, ...rest]: string[], env: Environment): Promise<ExitCode> {
  if (action === 'create') return await createToken(rest, env);
  if (action === 'list') return await list(rest, env);
  if (action === 'revoke') return await revoke(rest, env);
  throw usageError('use create, list or revoke', 'tokens');
}

async function list(argv: string[], env: Environment): Promise<ExitCode> {
  const flags = { all: SWITCH, json: SWITCH, ...SERVER_FLAGS };
  const { values, positionals } = readFlags('tokens', argv, flags, env);
  if (positionals.length > 0) throw usageError('"list" takes options only', 'tokens');
  const endpoint = serverEndpoint(values, env, undefined, 'owner');
  const { credentials, hasMore } = await requestJson<CredentialList>(endpoint, 'GET', '/credentials');
  const shown = credentials.filter(({ kind, revokedAt }) => kind === 'token' && (values.all || revokedAt === null));
  if (values.json) for (const one of shown) print(JSON.stringify(one));
  else if (shown.length === 0) print('no tokens yet');
  else table(['ID', 'NAME', 'ROLE', 'SCOPE', 'LAST USED', 'EXPIRES'], shown.map(rowOf));
  if (hasMore) printNotice('showing the newest only');
  return EXIT.done;
}

function rowOf({ id, name, role, scope, createdAt, lastUsedAt, expiresAt, revokedAt }: CredentialSummary): string[] {
  const used = lastUsedAt > createdAt ? minuteOf(lastUsedAt) : 'never';
  const end = expiresAt === null ? 'never' : minuteOf(expiresAt);
  return [id, name, role, scopeInWords(scope), used, revokedAt === null ? end : `revoked ${minuteOf(revokedAt)}`];
}

function scopeInWords(scope: Scope): string {
  switch (scope.kind) {
    case 'everything':
      return 'everything';
    case 'agents':
      return [...scope.ids, ...scope.prefixes.map((prefix) => `${prefix}…`)].join(', ');
    case 'session':
      return `session ${scope.sessionId}`;
    case 'log':
      return `log of ${scope.agentId}`;
    case 'fleet':
      return 'list of sessions';
  }
}

function minuteOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')}Z`;
}

async function revoke(argv: string[], env: Environment): Promise<ExitCode> {
  const { values, positionals: ids } = readFlags('tokens', argv, SERVER_FLAGS, env);
  if (ids.length === 0) throw usageError('pass token ids as shown by "list"', 'tokens');
  const endpoint = serverEndpoint(values, env, undefined, 'owner');
  let failures = 0;
  for (const id of ids) {
    const path = `/credentials/${encodeURIComponent(id)}`;
    try {
      const { credential } = await requestJson<{ credential: CredentialSummary }>(endpoint, 'DELETE', path);
      print(`${credential.id} (${credential.name}) is revoked`);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      failures += 1;
      printNotice(error.message);
    }
  }
  return failures === 0 ? EXIT.done : EXIT.failed;
}

const ROLES = ['runner', 'viewer', 'operator', 'admin', 'issuer'] as const;
const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
const MAX_EXPIRY_MS = 10 * 366 * UNITS.d;

/** `interlude tokens create`: the token alone is on stdout, or in its file. */
async function createToken(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { request, out, server } = readOptions(argv, env);
  const endpoint = serverEndpoint(server, env, undefined, 'owner');
  // Opened before the token is created, because the token can't be shown a second time.
  const file = out === undefined ? null : draftOf(resolve(out));
  try {
    const { token, credential } = await requestJson<NewToken>(endpoint, 'POST', '/tokens', request);
    if (file === null) process.stdout.write(`${token}\n`);
    else file.keep(`${token}\n`);
    const where = file === null ? 'it won’t be shown again' : `written to ${file.path}`;
    printNotice(`${credential.name}: ${where}; to revoke it: ${interludeCommand(['tokens', 'revoke', credential.id])}`);
    if (credential.role === 'runner') printNotice('pass it to the runner with --token-file FILE or INTERLUDE_TOKEN');
    return EXIT.done;
  } finally {
    file?.discard();
  }
}

/** Prepares a file readable by its owner only; `keep` writes it in one step. */
function draftOf(path: string): { path: string; keep(text: string): void; discard(): void } {
  const draft = `${path}.${process.pid}.new`;
  removeStaleDrafts(path, /^(\d+)\.new$/);
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
  if (role === undefined) throw usageError(`--role must be one of ${ROLES.join(', ')}`, 'tokens');
  if (role === 'runner' && agent === undefined && agentPrefix === undefined) {
    throw usageError('add --agent ID, or --agent-prefix P for every agent whose id starts with P', 'tokens');
  }
  const request: NewTokenRequest = {
    role,
    ...(agent === undefined ? {} : { agent }),
    ...(agentPrefix === undefined ? {} : { agentPrefix }),
    ...(name === undefined ? {} : { name }),
    ...(expires === undefined ? {} : { expiresAt: Date.now() + durationMs(expires) }),
  };
  return { request, out, server: values };
}

function durationMs(text: string): number {
  const [, count, unit = 'd'] = /^(\d{1,5})([mhdw])$/.exec(text) ?? [];
  const ms = Number(count) * UNITS[unit as keyof typeof UNITS];
  if (ms > 0 && ms <= MAX_EXPIRY_MS) return ms;
  throw usageError('--expires must be a time like 30m, 12h, 90d or 52w, at most 10 years', 'tokens');
}
