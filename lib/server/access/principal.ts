import { AppError } from '@interlude/protocol/errors';
import {
  type CredentialKind,
  EVERYTHING,
  PERMISSIONS,
  type Permission,
  type Role,
  type Scope,
} from '@interlude/protocol/scope';

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
  return PERMISSIONS[role].includes(permission);
}

/**
 * Decides by the role alone, before anything is looked up: the answer tells nothing of what there is.
 *
 * @throws AppError `forbidden`
 */
export function requirePermission(principal: Principal, permission: Permission): void {
  if (may(principal, permission)) return;
  throw new AppError('forbidden', `${REFUSED[permission]} This credential has the role ${principal.role}.`, {
    details: { role: principal.role },
  });
}

const REFUSED: Record<Permission, string> = {
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
