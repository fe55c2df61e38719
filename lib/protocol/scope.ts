/**
 * Roles, their permissions, and the part of the fleet that a credential reaches.
 *
 * Everything outside a scope does not exist for its owner: no list, count, frame or error reveals it.
 */

/**
 * `owner`: the installation's own token, an admin that also speaks as any agent. `timer`: the hosting platform, to run due
 * work. `monitor`: a metrics collector.
 */
export const ROLES = ['viewer', 'operator', 'admin', 'owner', 'runner', 'issuer', 'timer', 'monitor'] as const;
export type Role = (typeof ROLES)[number];

/** Roles that an admin, or the groups of an identity provider, can give to people. */
export const MEMBER_ROLES = ['viewer', 'operator', 'admin'] as const satisfies Role[];
export type MemberRole = (typeof MEMBER_ROLES)[number];

/**
 * Required by routes. `read`: read everything in scope. `attend`: read an agent's commands and pending replies. `act`:
 * send commands and decide requests. `administer`: people, credentials, embeds, audit. `speak`: be an agent's runner.
 * `issue`: create embed tokens. `tend`: run due work. `observe`: read metrics. `self`: only be authenticated.
 */
export type Permission = 'read' | 'attend' | 'act' | 'administer' | 'speak' | 'issue' | 'tend' | 'observe' | 'self';

export const PERMISSIONS: Record<Role, readonly Permission[]> = {
  viewer: ['self', 'read', 'attend'],
  operator: ['self', 'read', 'attend', 'act'],
  admin: ['self', 'read', 'attend', 'act', 'issue', 'administer', 'tend', 'observe'],
  owner: ['self', 'read', 'attend', 'act', 'issue', 'administer', 'tend', 'observe', 'speak'],
  runner: ['self', 'attend', 'speak'],
  issuer: ['self', 'issue'],
  timer: ['tend'],
  monitor: ['observe'],
};

export type CredentialKind = 'session' | 'token' | 'embed' | 'code';

export type Scope =
  | { kind: 'everything' }
  /** Agents by id or id prefix, with all that is theirs. `producerPrefix` is that of a runner's outbox ids. */
  | { kind: 'agents'; ids: readonly string[]; prefixes: readonly string[]; producerPrefix?: string }
  | { kind: 'session'; sessionId: string }
  /** One agent's log and nothing else. */
  | { kind: 'log'; agentId: string }
  /** The session list of `within`: rows, counts and changes. No session can be opened. */
  | { kind: 'fleet'; within: Scope };

export const EVERYTHING: Scope = { kind: 'everything' };

/** True if a scope contains an agent: its row, pending replies and commands. */
export function reachesAgent(scope: Scope, agentId: string): boolean {
  if (scope.kind === 'everything') return true;
  if (scope.kind !== 'agents') return false;
  return scope.ids.includes(agentId) || scope.prefixes.some((prefix) => agentId.startsWith(prefix));
}

export function reachesLog(scope: Scope, agentId: string): boolean {
  return scope.kind === 'log' ? scope.agentId === agentId : reachesAgent(scope, agentId);
}

/** True if a scope contains a session and its rows. Rows without a session belong to their agent. */
export function reachesSession(
  scope: Scope,
  { agentId, sessionId }: { agentId: string; sessionId: string | null },
): boolean {
  return scope.kind === 'session' ? scope.sessionId === sessionId : reachesAgent(scope, agentId);
}

/** The scope whose sessions are listed and counted. For lists only; everything else checks the scope itself. */
export function listedScope(scope: Scope): Scope {
  return scope.kind === 'fleet' ? scope.within : scope;
}

/** A key that is equal for equal scopes. */
export function scopeKey(scope: Scope): string {
  switch (scope.kind) {
    case 'everything':
      return '';
    case 'agents':
      return JSON.stringify([scope.kind, [...scope.ids].sort(), [...scope.prefixes].sort()]);
    case 'session':
      return JSON.stringify([scope.kind, scope.sessionId]);
    case 'log':
      return JSON.stringify([scope.kind, scope.agentId]);
    case 'fleet':
      return JSON.stringify([scope.kind, scopeKey(scope.within)]);
  }
}
