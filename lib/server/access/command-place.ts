import { join, relative, sep } from 'node:path';
import type { FoundAgent } from '@interlude/protocol/connectable-agents';
import { processState } from '@interlude/protocol/process-state.mjs';
import { shellWord } from '@interlude/protocol/shell-word.mjs';

/** Settings for shell commands that reach this server. */
export interface CommandPlace {
  /** The folder in which `npx interlude` is this program, quoted for the shell. */
  folder: string;
  /** Environment prefix for an `interlude` command; null if `npm start` did not start this server. */
  setting: string | null;
  /** Shell expression that reads the runners' token and is valid in double quotes; null if unknown. */
  token: string | null;
  /** True if the reader's terminal is probably on this machine: the server listens on loopback for itself only. */
  isLocal: boolean;
  /** A recording to replay. */
  recording: string;
}

const RECORDING = 'lib/runner/cli/demo/recordings/test-run.jsonl';

/** @param root Interlude's folder, the working directory of `npm start` */
export function commandPlace(env: Record<string, string | undefined>, root = process.cwd()): CommandPlace {
  const { INTERLUDE_DATA_DIR: dataDir, INTERLUDE_RUNNER_TOKEN_FILE: tokenFile } = env;
  const folders = root.split(sep);
  const isInstalled = folders.includes('node_modules');
  const folder = shellWord(isInstalled ? folders.slice(0, folders.lastIndexOf('node_modules')).join(sep) : root);
  const isDefault = dataDir === join(isInstalled ? (env.HOME ?? '') : root, '.interlude');
  const prefix = dataDir ? `INTERLUDE_DATA_DIR=${shellWord(below(root, dataDir))} ` : null;
  const token = tokenFile ? `$(cat ${shellWord(below(root, tokenFile))})` : null;
  const recording = isInstalled ? shellWord(`${root}/${RECORDING}`) : RECORDING;
  return { folder, setting: isDefault ? '' : prefix, token, isLocal: isLocal(env), recording };
}

/** True for `npm start` without a public address. */
function isLocal(env: Record<string, string | undefined>): boolean {
  const { HOST = '', INTERLUDE_RUNNER_TOKEN_FILE: tokenFile } = env;
  const isPublic = PUBLIC.some((name) => (env[name] ?? '').trim() !== '');
  return Boolean(tokenFile) && !isPublic && /^(?:|localhost|127(?:\.\d+){3}|\[?::1\]?)$/.test(HOST);
}

/** Each names an address or a proxy through which others reach the server. */
const PUBLIC = ['INTERLUDE_PUBLIC_URL', 'INTERLUDE_ALLOWED_HOSTS', 'INTERLUDE_TRUSTED_PROXY'];

/**
 * Agents installed on this machine, for a reader who may connect them; null if the server doesn't look: on another
 * machine than the reader's, and without `npm start`.
 */
export async function findLocalAgents({ isLocal: looks }: CommandPlace): Promise<readonly FoundAgent[] | null> {
  const { findAgents } = processState();
  return looks && findAgents !== null ? await findAgents() : null;
}

function below(root: string, path: string): string {
  const inner = relative(root, path);
  return inner.startsWith('..') ? path : inner;
}
