import { readCredentials, readOwnSignIns } from '@/lib/server/access/manage-credentials';
import { readMembers } from '@/lib/server/access/manage-members';
import type { Principal } from '@/lib/server/access/principal';
import { readForPage } from '../read-in-turn';

/** What the pages of the settings begin with. */

export function readFirstSignIns(principal: Principal) {
  return readForPage((sight) => readOwnSignIns(sight, principal, Date.now()));
}

export function readFirstCredentials() {
  return readForPage((sight) => readCredentials(sight, Date.now()));
}

export function readFirstMembers() {
  return readForPage((sight) => readMembers(sight, Date.now()));
}
