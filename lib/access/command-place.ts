import { relative } from 'node:path';
import { shellWord } from '@/lib/protocol/shell-word.mjs';

/** What a command needs, run in Interlude's folder on the server's machine, to find this very server. */
export interface CommandPlace {
  /** What is written before a command of ours; null where `npm start` did not start the server, and it knows nothing. */
  setting: string | null;
  /** For between double quotes: the shell reads the token from its file; null where it was given, and is in none. */
  token: string | null;
}

/** @param root the folder of Interlude, where `npm start` runs the server */
export function commandPlace(env: Record<string, string | undefined>, root = process.cwd()): CommandPlace {
  const { INTERLUDE_DATA_DIR: dataDir, INTERLUDE_TOKEN_FILE: tokenFile } = env;
  const folder = dataDir ? below(root, dataDir) : null;
  const setting = folder === null ? null : folder === '.interlude' ? '' : `INTERLUDE_DATA_DIR=${shellWord(folder)} `;
  return { setting, token: tokenFile ? `$(cat ${shellWord(below(root, tokenFile))})` : null };
}

function below(root: string, path: string): string {
  const inner = relative(root, path);
  return inner.startsWith('..') ? path : inner;
}
