import { access, constants, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import type { FoundAgent } from '@interlude/protocol/agent-status';

/** Evidence that an agent is installed or runs on this machine, and how to connect it. */
interface DetectionRule {
  title: string;
  /** Any one of these programs on the PATH. */
  programs?: readonly string[];
  /** Any one of these paths; `~` is the home folder, `$NAME` an environment variable. */
  files?: readonly string[];
  /** Arguments of `interlude` that connect it, run one after the other. */
  commands: readonly string[];
  /** Shown to the operator. */
  why: string;
}

/** ACP agents: title, program, command line. */
const ACP_AGENTS: readonly (readonly [string, string, string])[] = [
  ['Gemini CLI', 'gemini', 'gemini --acp'],
  ['Qwen Code', 'qwen', 'qwen --acp'],
  ['GitHub Copilot CLI', 'copilot', 'copilot --acp'],
  ['Kimi Code', 'kimi', 'kimi acp'],
  ['Goose', 'goose', 'goose acp'],
  ['Claude Code over ACP', 'claude-agent-acp', 'claude-agent-acp'],
  ['Codex over ACP', 'codex-acp', 'codex-acp'],
];

/** Detection rules by kind. They import nothing, so that the dashboard can load them at startup. */
export const DETECTION_RULES: Readonly<Record<string, readonly DetectionRule[]>> = {
  claude: [
    {
      title: 'Claude Code',
      programs: ['claude'],
      commands: ['runner claude --cwd ~/my-project'],
      why: 'Send it messages from here; its turns, and its work between turns, appear here.',
    },
  ],
  hooks: [
    {
      title: 'Claude Code in your terminals',
      files: ['$CLAUDE_CONFIG_DIR/settings.json', '~/.claude/settings.json', '~/.claude/projects'],
      commands: ['hooks install', 'runner hooks'],
      why: 'Hooks make the Claude Code sessions in your terminals appear here too.',
    },
  ],
  codex: [
    {
      title: 'Codex in your terminals',
      files: [
        '$CODEX_HOME/app-server-control/app-server-control.sock',
        '~/.codex/app-server-control/app-server-control.sock',
      ],
      commands: ['runner codex'],
      why: 'It is running in a terminal: its threads appear here, and you can keep using the terminal.',
    },
    {
      title: 'Codex',
      programs: ['codex'],
      commands: ['runner codex'],
      why: 'Its threads appear here, including commands that outlive their turns.',
    },
  ],
  opencode: [
    {
      title: 'OpenCode',
      programs: ['opencode'],
      commands: ['runner opencode --url http://127.0.0.1:4096'],
      why: 'Start it with “opencode --port 4096” or “opencode serve --port 4096”. You can keep using it in the terminal.',
    },
  ],
  acp: ACP_AGENTS.map(([title, program, command]) => ({
    title,
    programs: [program],
    commands: [`runner acp -- ${command}`],
    why: 'It speaks the Agent Client Protocol: its turns, permissions and background work appear here.',
  })),
  agentapi: [
    {
      title: 'AgentAPI',
      programs: ['agentapi'],
      commands: ['runner agentapi --url http://127.0.0.1:3284'],
      why: 'The terminal agent behind AgentAPI appears here, for example “agentapi server -- aider”.',
    },
  ],
};

type Environment = Record<string, string | undefined>;

/** Finds connectable agents on this machine, in the order of `DETECTION_RULES`; the first match of a command wins. */
export async function findAgents(env: Environment): Promise<FoundAgent[]> {
  const found: FoundAgent[] = [];
  for (const [kind, rules] of Object.entries(DETECTION_RULES)) {
    for (const rule of rules) {
      const at = await locate(rule, env);
      const { title, commands, why } = rule;
      if (at === null || found.some((one) => one.commands.join() === commands.join())) continue;
      found.push({ kind, title, at, commands: [...commands], why });
    }
  }
  return found;
}

async function locate({ programs = [], files = [] }: DetectionRule, env: Environment): Promise<string | null> {
  for (const program of programs) {
    const path = await findProgram(program, env);
    if (path !== null) return path;
  }
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
