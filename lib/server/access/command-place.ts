import { relative } from 'node:path';
import { type FoundAgent, readFoundAgents } from '@interlude/protocol/agent-status';
import { shellWord } from '@interlude/protocol/shell-word.mjs';

/** Environment that a shell command in Interlude's folder needs to reach this server. */
export interface CommandPlace {
  /** Environment prefix for an `interlude` command; null if `npm start` did not start this server. */
  setting: string | null;
  /** Shell expression, valid in double quotes, that reads the runners' token; null if unknown. */
  token: string | null;
  /** Agents installed on this machine; empty if `npm start` did not start this server. */
  found: FoundAgent[];
}

/** @param root Interlude's folder, the working directory of `npm start` */
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
