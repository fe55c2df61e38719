import { cutText } from '@interlude/protocol/cut-text';
import { AppError } from '@interlude/protocol/errors';
import { type Configuration, fetchUserInfo, type IDToken, WWWAuthenticateChallengeError } from 'openid-client';
import { providerUnavailable } from './oidc-provider';
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
export function roleFromClaims(claims: PersonClaims, settings: RoleSettings): PersonRole | null {
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
  return claimOf(claims, settings.groupsClaim) === undefined ? undefined : roleFromClaims(claims, settings);
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
  return cutText(claim.toWellFormed().replace(UNSEEN, ' ').trim(), MAX_LENGTH) || null;
}

/** As OpenID Connect bounds it. */
const MAX_SUBJECT_LENGTH = 255;

/**
 * Claims about a person. Asks the userinfo endpoint if the ID token lacks name, email or groups, or if a refresh returned
 * none. Signed claims win.
 *
 * @param tokens `subject`: who it has to be about
 * @throws AppError, or what the library throws if the provider does not answer, or answers about somebody else
 */
export async function fetchClaims(
  configuration: Configuration,
  tokens: { subject: string; idToken: IDToken | undefined; accessToken: string },
  groupsClaim: string,
): Promise<PersonClaims> {
  const { subject, idToken, accessToken } = tokens;
  // What is stored of it has to stay one person's.
  if (subject.length > MAX_SUBJECT_LENGTH || !subject.isWellFormed()) {
    throw new AppError('malformed', 'The identity provider names you by a subject that nobody could be known by.');
  }
  const { issuer, userinfo_endpoint } = configuration.serverMetadata();
  if (idToken !== undefined && idToken.sub !== subject)
    throw providerUnavailable(issuer, new Error('the ID token is about another subject than the sign-in'));
  const isWhole =
    idToken !== undefined && ['name', 'email', groupsClaim].every((name) => claimOf(idToken, name) !== undefined);
  if (isWhole || (idToken !== undefined && userinfo_endpoint === undefined)) return idToken;
  const told = await fetchUserInfo(configuration, accessToken, subject).catch((error) => {
    // From the token endpoint it would say that our secret is wrong.
    throw error instanceof WWWAuthenticateChallengeError ? providerUnavailable(issuer, error) : error;
  });
  // That an address is verified holds for the address it was said with.
  const email = idToken !== undefined && 'email' in idToken ? idToken : told;
  return { ...told, ...idToken, email: email.email, email_verified: email.email_verified };
}
