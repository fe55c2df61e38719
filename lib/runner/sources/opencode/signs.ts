import type { DetectionRule } from '../found-agents';

export const signs: readonly DetectionRule[] = [
  {
    title: 'OpenCode',
    programs: ['opencode'],
    commands: ['runner opencode --url http://127.0.0.1:4096'],
    why: 'Start it with “opencode --port 4096”, or “opencode serve --port 4096”: both go on beside this page.',
  },
];
