import { type Configuration, fetchUserInfo, type IDToken } from 'openid-client';
import { claimOf, type PersonClaims } from './role-of';

/**
 * Everything the provider says of whoever signed in. Some tell name, email and groups only when asked: that is asked if
 * anything is missing. What the signed token says goes before it.
 *
 * @throws what the library throws if the provider does not answer, or answers about somebody else
 */
export async function claimsOf(
  configuration: Configuration,
  tokens: { idToken: IDToken; accessToken: string },
  groupsClaim: string,
): Promise<PersonClaims> {
  const { idToken, accessToken } = tokens;
  const isWhole = ['name', 'email', groupsClaim].every((name) => claimOf(idToken, name) !== undefined);
  if (isWhole || configuration.serverMetadata().userinfo_endpoint === undefined) return idToken;
  const told = await fetchUserInfo(configuration, accessToken, idToken.sub);
  // That an address is verified holds for the address it was said with.
  const email = 'email' in idToken ? idToken : told;
  return { ...told, ...idToken, email: email.email, email_verified: email.email_verified };
}
