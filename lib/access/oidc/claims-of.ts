import { type Configuration, fetchUserInfo, type IDToken, WWWAuthenticateChallengeError } from 'openid-client';
import { AppError } from '@/lib/protocol/errors';
import { providerAway } from './provider-refusal';
import { claimOf, type PersonClaims } from './role-of';

/** As OpenID Connect bounds it. */
const MAX_SUBJECT_LENGTH = 255;

/**
 * Everything the provider says of whoever signed in. Some tell name, email and groups only when asked: that is asked if
 * anything is missing. What the signed token says goes before it.
 *
 * @throws AppError, or what the library throws if the provider does not answer, or answers about somebody else
 */
export async function claimsOf(
  configuration: Configuration,
  tokens: { idToken: IDToken; accessToken: string },
  groupsClaim: string,
): Promise<PersonClaims> {
  const { idToken, accessToken } = tokens;
  // What is stored of it has to stay one person's.
  if (idToken.sub.length > MAX_SUBJECT_LENGTH || !idToken.sub.isWellFormed()) {
    throw new AppError('malformed', 'The identity provider names you by a subject that nobody could be known by.');
  }
  const isWhole = ['name', 'email', groupsClaim].every((name) => claimOf(idToken, name) !== undefined);
  const { issuer, userinfo_endpoint } = configuration.serverMetadata();
  if (isWhole || userinfo_endpoint === undefined) return idToken;
  const told = await fetchUserInfo(configuration, accessToken, idToken.sub).catch((error) => {
    // From the token endpoint it would say that our secret is wrong.
    throw error instanceof WWWAuthenticateChallengeError ? providerAway(issuer, error) : error;
  });
  // That an address is verified holds for the address it was said with.
  const email = 'email' in idToken ? idToken : told;
  return { ...told, ...idToken, email: email.email, email_verified: email.email_verified };
}
