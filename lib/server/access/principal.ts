import { cutText } from '@interlude/protocol/cut-text';
import { AppError } from '@interlude/protocol/errors';
import type { InboxPerson } from '@interlude/protocol/inbox';
import { MAX_PERSON_NAME } from '@interlude/protocol/limits';
import {
  type CredentialKind,
  EVERYTHING,
  MAY,
  type Permission,
  type Role,
  reachesAgent,
  reachesLog,
  type Scope,
} from '@interlude/protocol/scope';
import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { sessionsIn } from '@/db/scope-sql';

/** Who sends a request, and what may come of it. */
export interface Principal {
  /** The person or the program: the member's id, `local` for a sign-in with this machine's link, else the credential's. */
  id: string;
  /** As the audit and the pages call it. */
  name: string;
  kind: 'human' | 'runner' | 'embed';
  role: Role;
  scope: Scope;
  credentialId: string;
  /** `owner` for the installation's own token. */
  credentialKind: CredentialKind | 'owner';
  memberId: string | null;
  /** Null: until it is revoked. */
  expiresAt: number | null;
  /** The one origin whose pages may show an embed. */
  parentOrigin: string | null;
  /** Whether secrets are taken out of whatever it is told. */
  redacts: boolean;
}

/** Who has the installation's own token, INTERLUDE_TOKEN or the data folder's. */
export const OWNER: Principal = {
  id: 'owner',
  name: 'The installation’s token',
  kind: 'human',
  role: 'owner',
  scope: EVERYTHING,
  credentialId: 'owner',
  credentialKind: 'owner',
  memberId: null,
  expiresAt: null,
  parentOrigin: null,
  redacts: false,
};

/** Who has INTERLUDE_CRON_SECRET: the host, which calls now and then. */
export const TIMER: Principal = {
  ...OWNER,
  id: 'timer',
  name: 'The host’s timer',
  role: 'timer',
  credentialId: 'timer',
  credentialKind: 'token',
  redacts: true,
};

/** Who has INTERLUDE_METRICS_TOKEN: Prometheus, or another that watches. */
export const MONITOR: Principal = {
  ...TIMER,
  id: 'monitor',
  name: 'The monitor',
  role: 'monitor',
  credentialId: 'monitor',
};

/** Whoever is at the machine itself: by its token, or signed in with a link that it printed. */
export function isLocal({ credentialKind, memberId }: Pick<Principal, 'credentialKind' | 'memberId'>): boolean {
  return credentialKind === 'owner' || (credentialKind === 'session' && memberId === null);
}

export function may({ role }: Pick<Principal, 'role'>, permission: Permission): boolean {
  return MAY[role].includes(permission);
}

/**
 * Decides by the role alone, before anything is looked up: the answer tells nothing of what there is.
 *
 * @throws AppError `forbidden`
 */
export function requirePermission(principal: Principal, permission: Permission): void {
  if (may(principal, permission)) return;
  throw new AppError('forbidden', `${FORBIDDEN[permission]} This credential has the role ${principal.role}.`, {
    details: { role: principal.role },
  });
}

const FORBIDDEN: Record<Permission, string> = {
  self: 'This credential opens nothing.',
  read: 'This is for people and programs that may read the dashboard.',
  attend: 'This is for an agent’s runner, and for those who may read the dashboard.',
  act: 'This is for operators: ask an admin for that role.',
  administer: 'This is for admins: ask one of them.',
  speak: 'This is for runners. Make a token for one with "interlude tokens create --agent <id>".',
  issue: 'This is for admins, and for a token that was made for embeds.',
  tend: 'This is for the host’s timer, with INTERLUDE_CRON_SECRET, and for admins.',
  observe: 'This is for whoever watches the server, with INTERLUDE_METRICS_TOKEN, and for admins.',
};

/** What a sign-in with this machine's own link is called. */
export const LOCAL_ADMIN = 'Local admin';
/** The `id` of everybody who signed in that way: the machine does not tell them apart. */
export const LOCAL_ID = 'local';
/** The name that agents and transcripts have for them. */
const OPERATOR = 'operator';

/** Names whoever claims an inbox item: a member, a program, or the one person that signs in with this machine's links. */
export function inboxPerson(principal: Pick<Principal, 'id' | 'credentialKind' | 'memberId' | 'name'>): InboxPerson {
  if (isLocal(principal)) return { id: LOCAL_ID, name: LOCAL_ADMIN };
  return { id: principal.id, name: cutText(principal.name, MAX_PERSON_NAME) };
}

/** What agents and transcripts call whoever acts. Who it was for certain, the audit has. */
export function operatorName(principal: Pick<Principal, 'credentialKind' | 'memberId' | 'name'>): string {
  return isLocal(principal) ? OPERATOR : principal.name;
}

/**
 * Refuses what a path names and a scope does not reach, in the same words as what does not exist. For lists and
 * streams, which name nothing, the queries themselves leave out what is out of scope.
 *
 * A session belongs for good to the first agent that writes to it, so that what is looked up here stays true.
 *
 * @throws AppError `not_found`
 */
export async function requireScope(
  { reader }: Database,
  scope: Scope,
  ids: { readonly sessionId?: string; readonly agentId?: string },
  /** What is asked for of an agent: its log, or anything else. */
  of: 'agent' | 'log',
): Promise<void> {
  if (scope.kind === 'everything') return;
  const { sessionId, agentId } = ids;
  const reaches = of === 'log' ? reachesLog : reachesAgent;
  if (agentId !== undefined && !reaches(scope, columnText(agentId))) throw unknown('agent', agentId);
  if (sessionId === undefined) return;
  const { rows } = await reader.execute({
    sql: `SELECT 1 FROM sessions WHERE id = ? AND ${sessionsIn(scope, 'id')}`,
    args: [columnText(sessionId)],
  });
  if (rows.length === 0) throw unknown('session', sessionId);
}

function unknown(what: string, id: string): AppError {
  return new AppError(
    'not_found',
    `There is no ${what} ${JSON.stringify(id)}. GET /api/v1/sessions and /agents list what there is.`,
  );
}
