import { AppError } from '@interlude/protocol/errors';
import type { InboxPerson } from '@interlude/protocol/inbox';
import { MAX_PERSON_NAME } from '@interlude/protocol/limits';
import {
  type CredentialKind,
  EVERYTHING,
  PERMISSIONS,
  type Permission,
  type Role,
  reachesAgent,
  reachesLog,
  type Scope,
} from '@interlude/protocol/scope';
import { truncateText } from '@interlude/protocol/text';
import { API_BASE } from '@interlude/protocol/version';
import type { Database } from '@/db/client';
import { sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';

/** The authenticated sender of a request and its permissions. */
export interface Principal {
  /** The member's id, `local` for a local sign-in, otherwise the credential's id. */
  id: string;
  /** Name for the audit and pages. */
  name: string;
  kind: 'human' | 'runner' | 'embed';
  role: Role;
  scope: Scope;
  credentialId: string;
  /** `owner` for the owner's token. */
  credentialKind: CredentialKind | 'owner';
  memberId: string | null;
  /** Epoch milliseconds; null for no expiry. */
  expiresAt: number | null;
  /** The only origin whose pages may frame an embed. */
  parentOrigin: string | null;
  /** True if the sender gets redacted responses. */
  redacts: boolean;
}

/** Holder of the owner's token, from INTERLUDE_TOKEN or the data folder. */
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

/** Holder of INTERLUDE_CRON_SECRET: the host's cron job. */
export const TIMER: Principal = {
  ...OWNER,
  id: 'timer',
  name: 'The host’s cron job',
  role: 'timer',
  credentialId: 'timer',
  credentialKind: 'token',
  redacts: true,
};

/** Holder of INTERLUDE_METRICS_TOKEN: Prometheus or another scraper. */
export const MONITOR: Principal = {
  ...TIMER,
  id: 'monitor',
  name: 'The metrics scraper',
  role: 'monitor',
  credentialId: 'monitor',
};

/** True for the owner's token and for sign-ins with a link from this machine. */
export function isLocal({ credentialKind, memberId }: Pick<Principal, 'credentialKind' | 'memberId'>): boolean {
  return credentialKind === 'owner' || (credentialKind === 'session' && memberId === null);
}

export function may({ role }: Pick<Principal, 'role'>, permission: Permission): boolean {
  return PERMISSIONS[role].includes(permission);
}

/**
 * Decides by role alone, before any lookup, so a refusal reveals nothing about stored data.
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
  self: 'This credential has no permissions. Use another one.',
  read: 'This requires read access to the dashboard.',
  attend: 'This requires a runner’s token or read access to the dashboard.',
  act: 'This requires the operator role. Ask an admin for it.',
  administer: 'This requires the admin role. Ask an admin.',
  speak: 'This requires a runner’s token. Create one with "interlude tokens create --agent <id>".',
  issue: 'This requires the admin role or a token for embeds.',
  tend: 'This requires INTERLUDE_CRON_SECRET or the admin role.',
  observe: 'This requires INTERLUDE_METRICS_TOKEN or the admin role.',
};

/** Display name of local sign-ins. */
export const LOCAL_ADMIN = 'Local admin';
/** Principal id of every local sign-in, because this machine's link doesn't distinguish people. */
export const LOCAL_ID = 'local';
/** Name of local people in transcripts and for agents. */
const OPERATOR = 'operator';

/** The sender as the claimant of an inbox item. */
export function inboxPerson(principal: Pick<Principal, 'id' | 'credentialKind' | 'memberId' | 'name'>): InboxPerson {
  if (isLocal(principal)) return { id: LOCAL_ID, name: LOCAL_ADMIN };
  return { id: principal.id, name: truncateText(principal.name, MAX_PERSON_NAME) };
}

/** The sender's name in transcripts and for agents. The audit has the exact identity. */
export function operatorName(principal: Pick<Principal, 'credentialKind' | 'memberId' | 'name'>): string {
  return isLocal(principal) ? OPERATOR : principal.name;
}

/**
 * Refuses an id outside the scope with the same error as an unknown id. Lists and streams filter in their queries
 * instead.
 *
 * A session stays bound to its first agent, so the result can't become stale.
 *
 * @throws AppError `not_found`
 */
export async function requireScope(
  { reader }: Database,
  scope: Scope,
  ids: { readonly sessionId?: string; readonly agentId?: string },
  of: 'agent' | 'log',
): Promise<void> {
  if (scope.kind === 'everything') return;
  const { sessionId, agentId } = ids;
  const reaches = of === 'log' ? reachesLog : reachesAgent;
  if (agentId !== undefined && !reaches(scope, columnText(agentId))) throw notFound('agent', agentId, '/agents');
  if (sessionId === undefined) return;
  const { rows } = await reader.execute({
    sql: `SELECT 1 FROM sessions WHERE id = ? AND ${sessionsIn(scope, 'id')}`,
    args: [columnText(sessionId)],
  });
  if (rows.length === 0) throw notFound('session', sessionId, '/sessions');
}

/** @param list path below the API's base that lists existing ids */
export function notFound(kind: string, id: string, list: string): AppError {
  return new AppError('not_found', `There is no ${kind} ${JSON.stringify(id)}. GET ${API_BASE}${list} lists them.`);
}
