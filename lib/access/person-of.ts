import { isLocal, type Principal } from './principal';

/** What a sign-in with this machine's own link is called. */
export const LOCAL_ADMIN = 'Local admin';
/** The `id` of everybody who signed in that way: the machine does not tell them apart. */
export const LOCAL_ID = 'local';
/** Who acts while everybody who signs in is the same person. */
const OPERATOR = 'operator';

/** What agents and transcripts call whoever acts. Who it was for certain, the audit has. */
export function personOf(principal: Pick<Principal, 'credentialKind' | 'memberId' | 'name'>): string {
  return isLocal(principal) ? OPERATOR : principal.name;
}
