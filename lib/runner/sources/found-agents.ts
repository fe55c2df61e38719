import { access, constants, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CONNECTABLE_AGENTS, type FoundAgent } from '@interlude/protocol/connectable-agents';

/** Evidence that an agent is installed or runs on this machine. */
interface DetectionRule {
  /** This program on the PATH. */
  program?: string;
  /** Any one of these paths; `~` is the home folder, `$NAME` an environment variable. */
  files?: readonly string[];
}

const CODEX_SOCKET = 'app-server-control/app-server-control.sock';

/** Detection rules by the id of the agent; others can't be detected. */
export const DETECTION_RULES: Readonly<Record<string, DetectionRule>> = {
  claude: { program: 'claude' },
  'claude-terminals': { files: ['$CLAUDE_CONFIG_DIR/settings.json', '~/.claude/settings.json', '~/.claude/projects'] },
  // Exists while Codex runs in a terminal.
  'codex-terminals': { files: [`$CODEX_HOME/${CODEX_SOCKET}`, `~/.codex/${CODEX_SOCKET}`] },
  codex: { program: 'codex' },
  opencode: { program: 'opencode' },
  gemini: { program: 'gemini' },
  qwen: { program: 'qwen' },
  copilot: { program: 'copilot' },
  kimi: { program: 'kimi' },
  goose: { program: 'goose' },
  'claude-acp': { program: 'claude-agent-acp' },
  'codex-acp': { program: 'codex-acp' },
  agentapi: { program: 'agentapi' },
};

type Environment = Record<string, string | undefined>;

/** A result is reused for this long. */
const FRESH_MS = 5_000;
/** A page does not wait longer, even if a folder of the PATH is on a file server that does not respond. */
const TIMEOUT_MS = 1_000;

/**
 * Wraps a search for pages that ask for its result all the time.
 *
 * Failure: resolves with the previous result if the search fails or takes too long.
 */
export function agentFinder(search: () => Promise<FoundAgent[]>, timeoutMs = TIMEOUT_MS) {
  let last: readonly FoundAgent[] = [];
  let startedAt = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | null = null;
  return async (): Promise<readonly FoundAgent[]> => {
    if (running === null && performance.now() - startedAt >= FRESH_MS) {
      startedAt = performance.now();
      const keep = (found: readonly FoundAgent[]) => {
        last = found;
        running = null;
      };
      running = search().then(keep, () => keep(last));
    }
    if (running !== null) await Promise.race([running, pause(timeoutMs, undefined, { ref: false })]);
    return last;
  };
}

/**
 * Finds agents in the order of `CONNECTABLE_AGENTS`; the first with the same commands wins. Reads names of files only: it
 * neither runs nor opens any.
 */
export async function findAgents(env: Environment): Promise<FoundAgent[]> {
  const located = await Promise.all(
    CONNECTABLE_AGENTS.map(async ({ id, commands }) => ({ id, commands, at: await locate(DETECTION_RULES[id], env) })),
  );
  const byCommands = new Map<string, FoundAgent>();
  for (const { id, commands, at } of located) {
    const key = commands.join('\n');
    if (at !== null && !byCommands.has(key)) byCommands.set(key, { id, at });
  }
  return [...byCommands.values()];
}

async function locate({ program, files = [] }: DetectionRule = {}, env: Environment): Promise<string | null> {
  if (program !== undefined) return await findProgram(program, env);
  for (const file of files) {
    const path = expandPath(file, env);
    if (path !== null && (await isAccessible(path, constants.F_OK))) return path;
  }
  return null;
}

async function findProgram(program: string, { PATH = '' }: Environment): Promise<string | null> {
  for (const folder of PATH.split(delimiter)) {
    // A relative entry names a different program in each folder.
    if (!isAbsolute(folder)) continue;
    const path = join(folder, program);
    if ((await isAccessible(path, constants.X_OK)) && (await stat(path)).isFile()) return path;
  }
  return null;
}

async function isAccessible(path: string, mode: number): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}

/** @returns null if its variable is not set */
function expandPath(path: string, env: Environment): string | null {
  const [, name, rest = ''] = /^(?:\$(\w+)|~)(.*)$/.exec(path) ?? [undefined, undefined, path];
  const base = path.startsWith('~') ? env.HOME : name === undefined ? '' : env[name];
  return base === undefined || (base === '' && name !== undefined) ? null : `${base}${rest}`;
}
