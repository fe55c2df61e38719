import type { DetectionRule } from '../found-agents';

export const signs: readonly DetectionRule[] = [
  {
    title: 'Claude Code in your terminals',
    files: ['$CLAUDE_CONFIG_DIR/settings.json', '~/.claude/settings.json', '~/.claude/projects'],
    commands: ['hooks install', 'runner hooks'],
    why: 'Hooks let Claude Code, run as you always run it, appear here too.',
  },
];
