/** Host of the identity provider; null if none is configured. */
export function providerName(env: Record<string, string | undefined>): string | null {
  const issuer = env.INTERLUDE_OIDC_ISSUER?.trim() ?? '';
  return URL.canParse(issuer) ? new URL(issuer).host : null;
}
