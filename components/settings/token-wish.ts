import type { NewTokenRequest } from '@interlude/protocol/access';

type TokenRole = NewTokenRequest['role'];
type Reach = 'agent' | 'prefix' | 'everything';
export type Expiry = 'never' | '30' | '90' | '365';

/** A new token as its form has it. */
export interface TokenWish {
  role: TokenRole;
  reach: Reach;
  /** An id, or how ids begin. */
  agent: string;
  name: string;
  expiry: Expiry;
}

export const EMPTY_TOKEN: TokenWish = { role: 'runner', reach: 'agent', agent: '', name: '', expiry: 'never' };

/** What people mostly want first. */
export const TOKEN_ROLES: readonly { role: TokenRole; word: string }[] = [
  { role: 'runner', word: 'Runner: speaks as its agents' },
  { role: 'viewer', word: 'Viewer: reads' },
  { role: 'operator', word: 'Operator: reads and writes to agents' },
  { role: 'issuer', word: 'Issuer: makes tokens for embeds' },
  { role: 'admin', word: 'Admin: everything' },
];

/** What a role can reach; first what it mostly does. */
export const REACHES: Record<TokenRole, readonly [Reach, ...Reach[]]> = {
  runner: ['agent', 'prefix'],
  viewer: ['everything', 'agent', 'prefix'],
  operator: ['everything', 'agent', 'prefix'],
  issuer: ['everything'],
  admin: ['everything'],
};

export function withRole(wish: TokenWish, role: TokenRole): TokenWish {
  return { ...wish, role, reach: REACHES[role][0] };
}

export const EXPIRIES: readonly { expiry: Expiry; word: string }[] = [
  { expiry: 'never', word: 'Never' },
  { expiry: '30', word: 'In 30 days' },
  { expiry: '90', word: 'In 90 days' },
  { expiry: '365', word: 'In a year' },
];

const DAY_MS = 24 * 60 * 60_000;

export function tokenRequest({ role, reach, agent, name, expiry }: TokenWish, now: number): NewTokenRequest {
  return {
    role,
    ...(reach === 'agent' ? { agent: agent.trim() } : reach === 'prefix' ? { agentPrefix: agent.trim() } : {}),
    ...(name.trim() === '' ? {} : { name: name.trim() }),
    ...(expiry === 'never' ? {} : { expiresAt: now + Number(expiry) * DAY_MS }),
  };
}
