import { truncateText } from '@interlude/protocol/text';
import type { PersonClaims } from './role-of';

const MAX_LENGTH = 200;

/** Control signs, and those that turn the direction of what is written after them. */
const UNSEEN = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/** What somebody is called. People choose names themselves, so it says nothing but itself and is never proof. */
export function personName(claims: PersonClaims): string {
  const names = [claims.name, claims.preferred_username, claims.email].map(personText);
  return names.find((name) => name !== null) ?? claims.sub;
}

/** A claim as it can be shown and stored; null if there is nothing to show. */
export function personText(claim: unknown): string | null {
  if (typeof claim !== 'string') return null;
  return truncateText(claim.toWellFormed().replace(UNSEEN, ' ').trim(), MAX_LENGTH) || null;
}
