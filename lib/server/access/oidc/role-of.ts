import { EVERYBODY, type OidcSettings } from './oidc-settings';

/** What a provider's groups can make of a person, from least to most. */
export type PersonRole = 'viewer' | 'operator' | 'admin';

/** What a provider says of somebody. */
export interface PersonClaims {
  sub: string;
  email?: unknown;
  email_verified?: unknown;
  [claim: string]: unknown;
}

type RoleSettings = Pick<
  OidcSettings,
  'groupsClaim' | 'adminGroups' | 'operatorGroups' | 'viewerGroups' | 'firstAdmin'
>;

/** The most that somebody's groups allow; null if they allow nothing. Group names are compared sign by sign. */
export function roleOf(claims: PersonClaims, settings: RoleSettings): PersonRole | null {
  if (isFirstAdmin(claims, settings.firstAdmin)) return 'admin';
  const own = groupsIn(claims, settings.groupsClaim);
  const isIn = (groups: readonly string[]) => groups.some((group) => group === EVERYBODY || own.includes(group));
  if (isIn(settings.adminGroups)) return 'admin';
  if (isIn(settings.operatorGroups)) return 'operator';
  return isIn(settings.viewerGroups) ? 'viewer' : null;
}

/**
 * As `roleOf`, from claims of a refresh, which may be fewer than those of the sign-in.
 *
 * @param email of the sign-in
 * @returns undefined if the claims don't say: the role stays
 */
export function refreshedRole(
  claims: PersonClaims,
  settings: RoleSettings,
  email: string | null,
): PersonRole | null | undefined {
  // without both email claims the first admin can't be recognised: the role stays
  const isSilent = claims.email === undefined || claims.email_verified === undefined;
  const asVerified = { ...claims, email: claims.email ?? email, email_verified: true };
  if (isSilent && isFirstAdmin(asVerified, settings.firstAdmin)) return undefined;
  return claimOf(claims, settings.groupsClaim) === undefined ? undefined : roleOf(claims, settings);
}

/** The claim of this name, or else what the dots in its name lead to; undefined if there is none. */
export function claimOf(claims: PersonClaims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let at: unknown = claims;
  for (const part of name.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Record<string, unknown>)[part];
  }
  return at;
}

function groupsIn(claims: PersonClaims, name: string): string[] {
  const groups = claimOf(claims, name);
  // One group is sometimes told as a plain text. It is not split: a group may be called "a, b".
  const told = Array.isArray(groups) ? groups : [groups];
  return told.filter((group) => typeof group === 'string' && group !== EVERYBODY);
}

/** An email that the provider has not verified is what somebody claims of themselves. */
function isFirstAdmin(claims: PersonClaims, firstAdmin: string | null): boolean {
  if (firstAdmin === null) return false;
  if (claims.sub === firstAdmin) return true;
  const { email, email_verified } = claims;
  return email_verified === true && typeof email === 'string' && lower(email) === lower(firstAdmin);
}

/** Of A to Z only: `toLowerCase` makes other letters the same that two mailboxes may differ by. */
function lower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
