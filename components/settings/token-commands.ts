import type { CredentialSummary } from '@interlude/protocol/access';
import { shellWord } from '@interlude/protocol/shell-word.mjs';

/**
 * How to use a new token. It stands in no command: arguments are in the list of processes and in the shell's history,
 * for others to read.
 */
export function tokenCommands(
  { role, scope }: Pick<CredentialSummary, 'role' | 'scope'>,
  origin: string,
): { what: string; command: string }[] {
  const agent = scope.kind === 'agents' ? (scope.ids[0] ?? null) : null;
  const file = `${(agent ?? role).replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, 60) || role}.token`;
  const keep = {
    what: 'Put it into a file that only you can read: paste it after this command, then press Enter and Ctrl-D.',
    command: `install -m 600 /dev/stdin ${file}`,
  };
  if (role === 'runner') {
    const as = agent === null ? '' : ` --agent ${shellWord(agent)}`;
    const run = `npm run -s interlude -- runner claude${as} \\\n  --url ${origin} \\\n  --token-file ${file}`;
    return [keep, { what: 'Start the runner with it, of Claude Code or of another kind:', command: run }];
  }
  const path = role === 'issuer' ? 'me' : role === 'admin' ? 'credentials' : 'sessions';
  const ask = `(printf 'Authorization: Bearer '; cat ${file}) | curl -H @- ${origin}/api/v1/${path}`;
  return [keep, { what: 'Ask the API with it:', command: ask }];
}
