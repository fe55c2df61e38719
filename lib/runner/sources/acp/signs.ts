import type { DetectionRule } from '../found-agents';

const WHY = 'It speaks the Agent Client Protocol: its turns, permissions and background work appear here.';

/** Agents that are known to speak it, each with how it is told to. */
const AGENTS: readonly (readonly [title: string, program: string, command: string])[] = [
  ['Gemini CLI', 'gemini', 'gemini --acp'],
  ['Qwen Code', 'qwen', 'qwen --acp'],
  ['GitHub Copilot CLI', 'copilot', 'copilot --acp'],
  ['Kimi Code', 'kimi', 'kimi acp'],
  ['Goose', 'goose', 'goose acp'],
  ['Claude Code over ACP', 'claude-agent-acp', 'claude-agent-acp'],
  ['Codex over ACP', 'codex-acp', 'codex-acp'],
];

export const signs: readonly DetectionRule[] = AGENTS.map(([title, program, command]) => ({
  title,
  programs: [program],
  commands: [`runner acp -- ${command}`],
  why: WHY,
}));
