import type { CredentialList, CredentialSummary } from '@interlude/protocol/access';
import type { Scope } from '@interlude/protocol/scope';
import { interludeCommand } from '../shown-command.mjs';
import { askServer } from './ask-server';
import type { Command } from './command';
import { createToken } from './create-token';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { readFlags, SERVER_FLAGS, SWITCH } from './flags';
import { serverEndpoint } from './local-server';
import { say } from './say';
import { print, table } from './table';

const HELP = `Usage: ${interludeCommand(['tokens'])} <create|list|revoke> [options]

The tokens of runners and other programs. A runner's token can speak as its agents, and hears what they are asked; it
reads no session, answers no request, and can't make other tokens.

  create --agent ID         for the agent with this id; may be combined with the next
         --agent-prefix P   for every agent whose id begins with this
         --role ROLE        runner (default), viewer, operator, admin, or issuer, which makes tokens for embeds; without
                            an agent all but a runner's reach everything
         --name N           what it is called in lists and in the audit
         --expires TIME     when it ends by itself: 12h, 90d, 52w; default: never
         --out FILE         write the token there, readable by you alone; without it it is printed on stdout, once
  list   [--all] [--json]   those that open something; with --all also those that were revoked. When one was last used
                            is known a minute late
  revoke ID…                end them, and every connection that they hold open, within two seconds

  --url URL       the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F  a file with its owner's or an admin's token; default: INTERLUDE_TOKEN, else the one of this machine

Exit codes: 0 done, 1 failed, 2 usage.`;

type Environment = Record<string, string | undefined>;

export const command: Command = { help: HELP, run: tokens };

async function tokens([action, ...rest]: string[], env: Environment): Promise<ExitCode> {
  if (action === 'create') return await createToken(rest, env);
  if (action === 'list') return await list(rest, env);
  if (action === 'revoke') return await revoke(rest, env);
  throw usageError('say create, list or revoke', 'tokens');
}

async function list(argv: string[], env: Environment): Promise<ExitCode> {
  const flags = { all: SWITCH, json: SWITCH, ...SERVER_FLAGS };
  const { values, positionals } = readFlags('tokens', argv, flags, env);
  if (positionals.length > 0) throw usageError('"list" takes options only', 'tokens');
  const endpoint = serverEndpoint(values, env, undefined, 'owner');
  const { credentials, hasMore } = await askServer<CredentialList>(endpoint, 'GET', '/credentials');
  const shown = credentials.filter(({ kind, revokedAt }) => kind === 'token' && (values.all || revokedAt === null));
  if (values.json) for (const one of shown) print(JSON.stringify(one));
  else if (shown.length === 0) print('there is no token yet');
  else table(['ID', 'NAME', 'ROLE', 'SCOPE', 'LAST USED', 'EXPIRES'], shown.map(rowOf));
  if (hasMore) say('there are more; these are the newest');
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
  if (ids.length === 0) throw usageError('name the ids of the tokens, as "list" has them', 'tokens');
  const endpoint = serverEndpoint(values, env, undefined, 'owner');
  let failures = 0;
  for (const id of ids) {
    const path = `/credentials/${encodeURIComponent(id)}`;
    try {
      const { credential } = await askServer<{ credential: CredentialSummary }>(endpoint, 'DELETE', path);
      print(`${credential.id} (${credential.name}) opens nothing any more`);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      failures += 1;
      say(error.message);
    }
  }
  return failures === 0 ? EXIT.done : EXIT.failed;
}
