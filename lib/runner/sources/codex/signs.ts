import type { DetectionRule } from '../found-agents';

export const signs: readonly DetectionRule[] = [
  {
    title: 'Codex in your terminals',
    files: [
      '$CODEX_HOME/app-server-control/app-server-control.sock',
      '~/.codex/app-server-control/app-server-control.sock',
    ],
    commands: ['runner codex'],
    why: 'It runs in a terminal now: its threads appear here, and the terminal goes on as it is.',
  },
  {
    title: 'Codex',
    programs: ['codex'],
    commands: ['runner codex'],
    why: 'Its threads appear here, with the commands that outlive their turns.',
  },
];
