import type { Principal } from './principal';

/** What a sign-in with this machine's own link is called. */
export const LOCAL_ADMIN = 'Local admin';
/** Who acts while everybody who signs in is the same person. */
const OPERATOR = 'operator';

/** What agents and transcripts call whoever acts. Who it was for certain, the audit has. */
export function personOf({ role, name }: Pick<Principal, 'role' | 'name'>): string {
  return role === 'owner' || name === LOCAL_ADMIN ? OPERATOR : name;
}
