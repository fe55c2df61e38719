/** An agent that a runner can connect, and how. */
export interface ConnectableAgent {
  /** Unique among `CONNECTABLE_AGENTS`. */
  id: string;
  /** Display name. */
  title: string;
  /** Commands that connect it, run one after the other, without the leading `interlude`. */
  commands: readonly string[];
  /** The effect of the commands, in a sentence. */
  why: string;
  /** Page that explains how to install it. */
  install: string;
}

/** An agent found on the dashboard's own machine. */
export interface FoundAgent {
  /** Id among `CONNECTABLE_AGENTS`. */
  id: string;
  /** The program, socket or settings file by which it was found. */
  at: string;
}

const OVER_ACP = 'Its turns, permissions and background work appear here, over the Agent Client Protocol.';
const acp = (id: string, title: string, command: string, install: string): ConnectableAgent => ({
  ...{ id, title, install },
  commands: [`runner acp -- ${command}`],
  why: OVER_ACP,
});

const CLAUDE_CODE = 'https://code.claude.com/docs/en/setup';
const CODEX = 'https://github.com/openai/codex';

/** Agents on the machine of their runner, in the order in which pages list them. */
export const CONNECTABLE_AGENTS: readonly ConnectableAgent[] = [
  {
    id: 'claude',
    title: 'Claude Code',
    commands: ['runner claude --cwd ~/my-project'],
    why: 'Starts a session that you steer from here. Name one of your projects, or begin with this empty folder.',
    install: CLAUDE_CODE,
  },
  {
    id: 'claude-terminals',
    title: 'Claude Code in your terminals',
    commands: ['hooks install', 'runner hooks'],
    why: 'Adds hooks to Claude Code’s settings. Sessions in your terminals appear here with their next event.',
    install: CLAUDE_CODE,
  },
  {
    id: 'codex-terminals',
    title: 'Codex in your terminals',
    commands: ['runner codex'],
    why: 'Its threads appear here, and you can keep using the terminal.',
    install: CODEX,
  },
  {
    id: 'codex',
    title: 'Codex',
    commands: ['runner codex'],
    why: 'Its threads appear here, including commands that outlive their turns.',
    install: CODEX,
  },
  {
    id: 'opencode',
    title: 'OpenCode',
    commands: ['runner opencode --url http://127.0.0.1:4096'],
    why: 'First start it with “opencode --port 4096”. You can keep using it in the terminal.',
    install: 'https://opencode.ai/docs',
  },
  acp('gemini', 'Gemini CLI', 'gemini --acp', 'https://github.com/google-gemini/gemini-cli'),
  acp('qwen', 'Qwen Code', 'qwen --acp', 'https://github.com/QwenLM/qwen-code'),
  acp('copilot', 'GitHub Copilot CLI', 'copilot --acp', 'https://github.com/github/copilot-cli'),
  acp('kimi', 'Kimi Code', 'kimi acp', 'https://github.com/MoonshotAI/kimi-cli'),
  acp('goose', 'Goose', 'goose acp', 'https://github.com/block/goose'),
  acp('claude-acp', 'Claude Code over ACP', 'claude-agent-acp', 'https://github.com/zed-industries/claude-agent-acp'),
  acp('codex-acp', 'Codex over ACP', 'codex-acp', 'https://github.com/zed-industries/codex-acp'),
  {
    id: 'agentapi',
    title: 'AgentAPI',
    commands: ['runner agentapi --url http://127.0.0.1:3284'],
    why: 'First start it with a terminal agent, such as “agentapi server -- aider”, which then appears here.',
    install: 'https://github.com/coder/agentapi',
  },
  {
    id: 'agui',
    title: 'An AG-UI server',
    commands: ['runner agui --url http://127.0.0.1:8000/'],
    why: 'Use the address of your server. Its runs appear here, and you can send it messages.',
    install: 'https://docs.ag-ui.com',
  },
];
