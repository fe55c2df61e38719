import type { Role, Scope } from '@interlude/protocol/scope';

/** What a credential reaches: `agent builder`, `agents whose ids begin with ci-`, `everything`. */
export function scopeInWords(scope: Scope, role: Role): string {
  switch (scope.kind) {
    case 'everything':
      return role === 'runner' ? 'every agent' : role === 'issuer' ? 'what an embed may show' : 'everything';
    case 'session':
      return `session ${scope.sessionId}`;
    case 'log':
      return `the log of ${scope.agentId}`;
    case 'fleet':
      return 'the list of sessions';
    case 'agents': {
      const { ids, prefixes } = scope;
      const named = ids.length === 0 ? [] : [`${ids.length === 1 ? 'agent' : 'agents'} ${ids.join(', ')}`];
      const begun = prefixes.length === 0 ? [] : [`agents whose ids begin with ${prefixes.join(' or ')}`];
      return [...named, ...begun].join(', and ') || 'nothing';
    }
  }
}
