import type { DetectionRule } from '../found-agents';

export const signs: readonly DetectionRule[] = [
  {
    title: 'AgentAPI',
    programs: ['agentapi'],
    commands: ['runner agentapi --url http://127.0.0.1:3284'],
    why: 'The terminal agent that AgentAPI serves appears here: “agentapi server -- aider”, say.',
  },
];
