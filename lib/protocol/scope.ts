/**
 * Who may do what, and with which part of the fleet.
 *
 * What is out of a scope does not exist for whoever has it: no list, count, frame or error tells of it.
 */

/**
 * `owner` is the installation's own token: everything an admin may, and to speak as any agent. `timer` is the host's, which
 * has done what is due, and `monitor` that of whoever watches the server.
 */
export const ROLES = ['viewer', 'operator', 'admin', 'owner', 'runner', 'issuer', 'timer', 'monitor'] as const;
export type Role = (typeof ROLES)[number];

/** What a person can be made by an admin, or by the groups of an identity provider. */
export const MEMBER_ROLES = ['viewer', 'operator', 'admin'] as const satisfies Role[];
export type MemberRole = (typeof MEMBER_ROLES)[number];

/**
 * What a route asks for. `read`: to look; `attend`: to see what an agent is sent and owes; `act`: to ask something of an agent, or to decide; `administer`: people,
 * credentials, embeds, audit; `speak`: to be an agent's runner; `issue`: to make tokens for embeds; `tend`: to have
 * done what is due; `observe`: to read how the server does; `self`: nothing but to be known.
 */
export type Permission = 'read' | 'attend' | 'act' | 'administer' | 'speak' | 'issue' | 'tend' | 'observe' | 'self';

export const PERMISSIONS: Record<Role, readonly Permission[]> = {
  viewer: ['self', 'read', 'attend'],
  operator: ['self', 'read', 'attend', 'act'],
  admin: ['self', 'read', 'attend', 'act', 'issue', 'administer', 'tend', 'observe'],
  owner: ['self', 'read', 'attend', 'act', 'issue', 'administer', 'tend', 'observe', 'speak'],
  // It reads no session and decides nothing.
  runner: ['self', 'attend', 'speak'],
  issuer: ['self', 'issue'],
  timer: ['tend'],
  monitor: ['observe'],
};

/** `session`: a person signed in with a browser; `token`: a program; `embed`: a frame in a console; `code`: a link to sign in. */
export type CredentialKind = 'session' | 'token' | 'embed' | 'code';

export type Scope =
  | { kind: 'everything' }
  /** Some agents, by id or by how their ids begin, with all that is theirs. `producerPrefix`: how a runner's outboxes begin. */
  | { kind: 'agents'; ids: readonly string[]; prefixes: readonly string[]; producerPrefix?: string }
  | { kind: 'session'; sessionId: string }
  /** One agent's log, and nothing else of it. */
  | { kind: 'log'; agentId: string }
  /** The list of the sessions in `within`: their rows, counts and changes. No session of it can be opened. */
  | { kind: 'fleet'; within: Scope };

export const EVERYTHING: Scope = { kind: 'everything' };

/** Whether an agent is in it: its row, its obligations, what it may be asked. */
export function reachesAgent(scope: Scope, agentId: string): boolean {
  if (scope.kind === 'everything') return true;
  if (scope.kind !== 'agents') return false;
  return scope.ids.includes(agentId) || scope.prefixes.some((prefix) => agentId.startsWith(prefix));
}

export function reachesLog(scope: Scope, agentId: string): boolean {
  return scope.kind === 'log' ? scope.agentId === agentId : reachesAgent(scope, agentId);
}

/** Whether a session is in it, or what belongs to one. What belongs to none is its agent's. */
export function reachesSession(
  scope: Scope,
  { agentId, sessionId }: { agentId: string; sessionId: string | null },
): boolean {
  return scope.kind === 'session' ? scope.sessionId === sessionId : reachesAgent(scope, agentId);
}

/** The scope whose sessions are listed and counted. Only lists may use it: every other question asks the scope itself. */
export function listedScope(scope: Scope): Scope {
  return scope.kind === 'fleet' ? scope.within : scope;
}

/** The same text for the same scope. */
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
