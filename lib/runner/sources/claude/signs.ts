import type { DetectionRule } from '../found-agents';

export const signs: readonly DetectionRule[] = [
  {
    title: 'Claude Code',
    programs: ['claude'],
    commands: ['runner claude --cwd ~/my-project'],
    why: 'What you write here reaches the agent; what it does, in a turn and between turns, appears here.',
  },
];
