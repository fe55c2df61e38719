import type { InboxPerson } from '@interlude/protocol/inbox';
import { MAX_PERSON_NAME } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { isLocal, type Principal } from './principal';

/** What a sign-in with this machine's own link is called. */
export const LOCAL_ADMIN = 'Local admin';
/** The `id` of everybody who signed in that way: the machine does not tell them apart. */
export const LOCAL_ID = 'local';
/** The name that agents and transcripts have for them. */
const OPERATOR = 'operator';

/** Names whoever claims an inbox item: a member, a program, or the one person that signs in with this machine's links. */
export function inboxPersonOf(principal: Pick<Principal, 'id' | 'credentialKind' | 'memberId' | 'name'>): InboxPerson {
  if (isLocal(principal)) return { id: LOCAL_ID, name: LOCAL_ADMIN };
  return { id: principal.id, name: truncateText(principal.name, MAX_PERSON_NAME) };
}

/** What agents and transcripts call whoever acts. Who it was for certain, the audit has. */
export function personOf(principal: Pick<Principal, 'credentialKind' | 'memberId' | 'name'>): string {
  return isLocal(principal) ? OPERATOR : principal.name;
}
