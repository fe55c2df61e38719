import type { Role, Scope } from '@interlude/protocol/scope';

export const ROLE_WORD: Record<Role, string> = {
  viewer: 'Viewer',
  operator: 'Operator',
  admin: 'Admin',
  owner: 'Owner',
  runner: 'Runner',
  issuer: 'Embed issuer',
  timer: 'Timer',
  monitor: 'Monitor',
};

/** Permissions of a role, worded to follow “can”. */
export const ROLE_CAN: Record<Role, string> = {
  viewer: 'read everything but change nothing',
  operator: 'read everything, write to agents and answer their requests',
  admin: 'read everything, write to agents, answer their requests and manage access',
  owner: 'do everything, including sending records as any agent',
  runner: 'send records for its agents and receive their commands, but not read sessions or answer requests',
  issuer: 'only create tokens for embeds',
  timer: 'only trigger scheduled work',
  monitor: 'only read the server’s metrics',
};

/** The scope of a credential: `agent builder`, `agents with ids starting with ci-`, `everything`. */
export function scopeInWords(scope: Scope, role: Role): string {
  switch (scope.kind) {
    case 'everything':
      return role === 'runner' ? 'every agent' : role === 'issuer' ? 'anything an embed can show' : 'everything';
    case 'session':
      return `session ${scope.sessionId}`;
    case 'log':
      return `the log of ${scope.agentId}`;
    case 'fleet':
      return 'the list of sessions';
    case 'agents': {
      const { ids, prefixes } = scope;
      const named = ids.length === 0 ? [] : [`${ids.length === 1 ? 'agent' : 'agents'} ${ids.join(', ')}`];
      const prefixed = prefixes.length === 0 ? [] : [`agents with ids starting with ${prefixes.join(' or ')}`];
      return [...named, ...prefixed].join(', and ') || 'nothing';
    }
  }
}
