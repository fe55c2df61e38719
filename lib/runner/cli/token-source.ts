import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { interludeCommand } from '../shown-command.mjs';
import { errorCode } from '../system-error.mjs';
import { CliError, EXIT } from './exit';

/**
 * Where the token of a command comes from. Not from its arguments: those stand in the list of processes, which
 * everybody on the machine may read, and in the shell's history.
 */
export type TokenSource =
  | { kind: 'file'; path: string }
  | { kind: 'environment'; token: string }
  /** What the server on this machine has left in the data folder. */
  | { kind: 'machine' };

export function tokenSource(
  flags: { 'token-file'?: string | undefined },
  env: Record<string, string | undefined>,
): TokenSource {
  const file = flags['token-file'] ?? (env.INTERLUDE_TOKEN_FILE || undefined);
  if (file !== undefined) return { kind: 'file', path: resolve(file) };
  const token = env.INTERLUDE_TOKEN?.trim();
  return token ? { kind: 'environment', token } : { kind: 'machine' };
}

/**
 * Read at each use: a token that is renewed is taken up by whoever runs already.
 *
 * @throws CliError in one line
 */
export function readTokenFile(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    const make = interludeCommand(['tokens', 'create', '--help']);
    throw new CliError(EXIT.failed, `the token file ${path} can’t be read (${errorCode(error)}); see "${make}"`);
  }
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new CliError(EXIT.failed, `the token file ${path} has to have one token in it and nothing else`);
}

/** What to do where the server refuses the token of a runner. */
export function adviceOnToken(source: TokenSource): string {
  const make = interludeCommand(['tokens', 'create', '--help']);
  switch (source.kind) {
    case 'file':
      return `put another into ${source.path}, which is read again within 30 s (to make one: ${make})`;
    case 'environment':
      return `start this again with another in INTERLUDE_TOKEN (to make one: ${make})`;
    case 'machine':
      return `"npm start" makes one for the runners of its machine; elsewhere give one with --token-file (to make one: ${make})`;
  }
}
