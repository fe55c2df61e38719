import { AppError } from '@interlude/protocol/errors';
import { type Configuration, fetchUserInfo, type IDToken, WWWAuthenticateChallengeError } from 'openid-client';
import { providerAway } from './provider-refusal';
import { claimOf, type PersonClaims } from './role-of';

/** As OpenID Connect bounds it. */
const MAX_SUBJECT_LENGTH = 255;

/**
 * Claims about a person. Asks the userinfo endpoint if the ID token lacks name, email or groups, or if a refresh returned
 * none. Signed claims win.
 *
 * @param tokens `subject`: who it has to be about
 * @throws AppError, or what the library throws if the provider does not answer, or answers about somebody else
 */
export async function claimsOf(
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
    throw providerAway(issuer, new Error('the ID token is about another subject than the sign-in'));
  const isWhole =
    idToken !== undefined && ['name', 'email', groupsClaim].every((name) => claimOf(idToken, name) !== undefined);
  if (isWhole || (idToken !== undefined && userinfo_endpoint === undefined)) return idToken;
  const told = await fetchUserInfo(configuration, accessToken, subject).catch((error) => {
    // From the token endpoint it would say that our secret is wrong.
    throw error instanceof WWWAuthenticateChallengeError ? providerAway(issuer, error) : error;
  });
  // That an address is verified holds for the address it was said with.
  const email = idToken !== undefined && 'email' in idToken ? idToken : told;
  return { ...told, ...idToken, email: email.email, email_verified: email.email_verified };
}
