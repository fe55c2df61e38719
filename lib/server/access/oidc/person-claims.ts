import { AppError } from '@interlude/protocol/errors';
import { truncateText } from '@interlude/protocol/text';
import { type Configuration, fetchUserInfo, type IDToken, WWWAuthenticateChallengeError } from 'openid-client';
import { providerUnavailable } from './oidc-provider';
import { EVERYBODY, type OidcSettings } from './oidc-settings';

/** Roles that groups can grant, lowest first. */
export type PersonRole = 'viewer' | 'operator' | 'admin';

interface PersonClaims {
  sub: string;
  email?: unknown;
  email_verified?: unknown;
  [claim: string]: unknown;
}

type RoleSettings = Pick<
  OidcSettings,
  'groupsClaim' | 'adminGroups' | 'operatorGroups' | 'viewerGroups' | 'firstAdmin'
>;

/** Highest role that the groups grant; null for none. Group names are compared exactly. */
export function roleFromClaims(claims: PersonClaims, settings: RoleSettings): PersonRole | null {
  if (isFirstAdmin(claims, settings.firstAdmin)) return 'admin';
  const own = groupsIn(claims, settings.groupsClaim);
  const isInAny = (groups: readonly string[]) => groups.some((group) => group === EVERYBODY || own.includes(group));
  if (isInAny(settings.adminGroups)) return 'admin';
  if (isInAny(settings.operatorGroups)) return 'operator';
  return isInAny(settings.viewerGroups) ? 'viewer' : null;
}

/**
 * Like `roleFromClaims`, for refreshed claims, which may be incomplete.
 *
 * @param email email of the sign-in
 * @returns undefined to keep the role, if the claims don't decide it
 */
export function refreshedRole(
  claims: PersonClaims,
  settings: RoleSettings,
  email: string | null,
): PersonRole | null | undefined {
  // without both email claims, the first admin can't be recognized
  const isUndecided = claims.email === undefined || claims.email_verified === undefined;
  const asVerified = { ...claims, email: claims.email ?? email, email_verified: true };
  if (isUndecided && isFirstAdmin(asVerified, settings.firstAdmin)) return undefined;
  return claimOf(claims, settings.groupsClaim) === undefined ? undefined : roleFromClaims(claims, settings);
}

/** The claim with this name, or the value at its dotted path; undefined if absent. */
function claimOf(claims: PersonClaims, name: string): unknown {
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
  // a single group may be a plain string; not split, because a name may contain a comma
  const all: unknown[] = Array.isArray(groups) ? groups : [groups];
  return all.filter((group): group is string => typeof group === 'string' && group !== EVERYBODY);
}

/** Unverified email addresses don't count. */
function isFirstAdmin(claims: PersonClaims, firstAdmin: string | null): boolean {
  if (firstAdmin === null) return false;
  if (claims.sub === firstAdmin) return true;
  const { email, email_verified } = claims;
  return email_verified === true && typeof email === 'string' && lower(email) === lower(firstAdmin);
}

/** ASCII only: `toLowerCase` would unify letters that distinguish mailboxes. */
function lower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

const MAX_LENGTH = 200;

/** Control characters and bidirectional overrides. */
const INVISIBLE = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/** Display name, chosen by the person and never proof of identity. */
export function personName(claims: PersonClaims): string {
  const names = [claims.name, claims.preferred_username, claims.email].map(personText);
  return names.find((name) => name !== null) ?? claims.sub;
}

/** The displayable part of a claim; null if empty. */
export function personText(claim: unknown): string | null {
  if (typeof claim !== 'string') return null;
  return truncateText(claim.toWellFormed().replace(INVISIBLE, ' ').trim(), MAX_LENGTH) || null;
}

/** Maximum length in OpenID Connect. */
const MAX_SUBJECT_LENGTH = 255;

/**
 * Claims about a person, from the userinfo endpoint if the ID token lacks name, email or groups, or a refresh returned
 * none. Signed claims win.
 *
 * @param tokens.subject the expected person
 * @throws AppError, or the library's error, if the provider doesn't respond or describes another person
 */
export async function fetchClaims(
  configuration: Configuration,
  tokens: { subject: string; idToken: IDToken | undefined; accessToken: string },
  groupsClaim: string,
): Promise<PersonClaims> {
  const { subject, idToken, accessToken } = tokens;
  // stored subjects must stay distinct
  if (subject.length > MAX_SUBJECT_LENGTH || !subject.isWellFormed()) {
    throw new AppError(
      'malformed',
      'The identity provider sent an invalid subject for you. Report this to its administrator.',
    );
  }
  const { issuer, userinfo_endpoint } = configuration.serverMetadata();
  if (idToken !== undefined && idToken.sub !== subject)
    throw providerUnavailable(issuer, new Error('the ID token has a different subject than the sign-in'));
  const isWhole =
    idToken !== undefined && ['name', 'email', groupsClaim].every((name) => claimOf(idToken, name) !== undefined);
  if (isWhole || (idToken !== undefined && userinfo_endpoint === undefined)) return idToken;
  const userInfo = await fetchUserInfo(configuration, accessToken, subject).catch((error) => {
    // signInRefusal would take this error for a rejected client secret
    throw error instanceof WWWAuthenticateChallengeError ? providerUnavailable(issuer, error) : error;
  });
  // `email_verified` only applies to the address beside it
  const email = idToken !== undefined && 'email' in idToken ? idToken : userInfo;
  return { ...userInfo, ...idToken, email: email.email, email_verified: email.email_verified };
}
