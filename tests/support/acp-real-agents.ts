import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Start configuration of a real ACP agent with an isolated home and a scripted model. */
interface RealAgent {
  /** Folder in INTERLUDE_TEST_AGENTS_DIR. */
  folder: string;
  /** Path in that folder's node_modules. */
  program: string;
  args: string[];
  /** Requires Node 22. */
  wantsNode22?: true;
  /** Files in its home: objects are written as JSON, text unchanged. */
  settings: (url: string) => Record<string, object | string>;
  env: (url: string, home: string) => Record<string, string>;
  /** A call to its shell tool. */
  shell: (command: string, isBackground: boolean) => { name: string; args: object };
}

const run_shell = (command: string, is_background: boolean) => ({
  name: 'run_shell_command',
  args: { command, description: 'Poll', is_background },
});

export const REAL_ACP_AGENTS: Record<'claude' | 'codex' | 'qwen' | 'gemini' | 'opencode', RealAgent> = {
  claude: {
    folder: 'claude-acp',
    program: '@agentclientprotocol/claude-agent-acp/dist/index.js',
    args: [],
    wantsNode22: true,
    settings: () => ({}),
    env: (url, home) => ({
      CLAUDE_CONFIG_DIR: join(home, '.claude'),
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'sk-ant-scripted',
      ANTHROPIC_MODEL: 'claude-sonnet-4-5',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_ERROR_REPORTING: '1',
      IS_SANDBOX: '1',
    }),
    shell: (command, run_in_background) => ({
      name: 'Bash',
      args: { command, description: 'Poll', ...(run_in_background ? { run_in_background } : {}) },
    }),
  },
  codex: {
    folder: 'codex-acp',
    program: '@agentclientprotocol/codex-acp/dist/index.js',
    args: [],
    wantsNode22: true,
    settings: (url) => ({
      '.codex/config.toml': [
        ...['model = "scripted"', 'model_provider = "scripted"', '[model_providers.scripted]', 'name = "scripted"'],
        ...[`base_url = "${url}/v1"`, 'wire_api = "responses"', 'env_key = "SCRIPTED_KEY"'],
        ...['request_max_retries = 0', 'stream_max_retries = 0', ''],
      ].join('\n'),
    }),
    env: (_, home) => ({ CODEX_HOME: join(home, '.codex'), SCRIPTED_KEY: 'k', INITIAL_AGENT_MODE: 'read-only' }),
    shell: (cmd, isBackground) => ({
      name: 'exec_command',
      args: isBackground
        ? { cmd, yield_time_ms: 250 }
        : { cmd, sandbox_permissions: 'require_escalated', justification: 'To make a file' },
    }),
  },
  qwen: {
    folder: 'qwen',
    program: '@qwen-code/qwen-code/cli-entry.js',
    args: ['--acp'],
    wantsNode22: true,
    settings: () => ({ '.qwen/settings.json': { security: { auth: { selectedType: 'openai' } } } }),
    env: (url) => ({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: 'scripted' }),
    shell: run_shell,
  },
  gemini: {
    folder: 'gemini',
    program: '@google/gemini-cli/bundle/gemini.js',
    args: ['--acp'],
    settings: () => ({ '.gemini/settings.json': { security: { auth: { selectedType: 'gemini-api-key' } } } }),
    env: (url) => ({ GEMINI_API_KEY: 'k', GOOGLE_GEMINI_BASE_URL: url, GEMINI_MODEL: 'gemini-2.5-pro' }),
    shell: run_shell,
  },
  opencode: {
    folder: 'opencode',
    program: `opencode-${process.platform}-${process.arch}-baseline/bin/opencode`,
    args: ['acp'],
    settings: (url) => ({
      '.config/opencode/opencode.json': opencodeConfiguration(url),
    }),
    env: () => ({ OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }),
    shell: (command) => ({ name: 'bash', args: { command, description: 'Poll' } }),
  },
};

/** @returns why it can't run here, or null */
export function missingAgent(agents: string | undefined, { folder, program, wantsNode22 }: RealAgent): string | null {
  if (agents === undefined) return 'INTERLUDE_TEST_AGENTS_DIR is not set';
  if (!existsSync(join(agents, folder, 'node_modules', program))) return `${program} is not installed`;
  return wantsNode22 === true && !existsSync(node22(agents)) ? 'Node 22 is not installed' : null;
}

export async function homeOf(agents: string, agent: RealAgent, url: string) {
  const base = await mkdtemp(join(tmpdir(), 'interlude-acp-'));
  onTestFinished(() => rm(base, { recursive: true, force: true, maxRetries: 10 }));
  const [home, cwd, temp] = ['home', 'work', 'tmp'].map((name) => join(base, name)) as [string, string, string];
  for (const folder of [home, cwd, temp]) await mkdir(folder);
  for (const [name, content] of Object.entries(agent.settings(url))) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  const program = join(agents, agent.folder, 'node_modules', agent.program);
  const isScript = program.endsWith('.js');
  const node = agent.wantsNode22 === true ? node22(agents) : process.execPath;
  const command: [string, ...string[]] = isScript ? [node, program, ...agent.args] : [program, ...agent.args];
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: home, TMPDIR: temp, SHELL: '/bin/bash', LANG: 'C.UTF-8', TERM: 'xterm' },
    ...agent.env(url, home),
  };
  return { cwd, command, env };
}

function node22(agents: string): string {
  return join(agents, 'node22', 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
}

/** OpenCode's configuration with the scripted model at this URL. */
export function opencodeConfiguration(url: string) {
  return {
    provider: {
      scripted: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${url}/v1`, apiKey: 'k' },
        models: { scripted: { name: 'Scripted', tool_call: true, limit: { context: 100_000, output: 8_000 } } },
      },
    },
    ...{ model: 'scripted/scripted', small_model: 'scripted/scripted', enabled_providers: ['scripted'] },
    ...{ autoupdate: false, permission: { bash: 'ask' } },
  };
}
