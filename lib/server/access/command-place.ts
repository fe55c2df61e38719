import { relative } from 'node:path';
import { type FoundAgent, readFoundAgents } from '@interlude/protocol/agent-status';
import { shellWord } from '@interlude/protocol/shell-word.mjs';

/** What a command run in Interlude's folder on the server's machine needs to find this server. */
export interface CommandPlace {
  /**
   * What to write before an Interlude command; null if `npm start` did not start this server, so that it is unknown.
   */
  setting: string | null;
  /** To stand between double quotes: makes the shell read the runners' token from its file; null if it is unknown. */
  token: string | null;
  /** Agents on this machine; none where `npm start` did not start this server. */
  found: FoundAgent[];
}

/** @param root the folder of Interlude, where `npm start` runs the server */
export function commandPlace(env: Record<string, string | undefined>, root = process.cwd()): CommandPlace {
  const { INTERLUDE_DATA_DIR: dataDir, INTERLUDE_RUNNER_TOKEN_FILE: tokenFile } = env;
  const folder = dataDir ? below(root, dataDir) : null;
  const setting = folder === null ? null : folder === '.interlude' ? '' : `INTERLUDE_DATA_DIR=${shellWord(folder)} `;
  const token = tokenFile ? `$(cat ${shellWord(below(root, tokenFile))})` : null;
  return { setting, token, found: readFoundAgents(env.INTERLUDE_FOUND_AGENTS) };
}

function below(root: string, path: string): string {
  const inner = relative(root, path);
  return inner.startsWith('..') ? path : inner;
}
