import { EncryptJWT, jwtDecrypt } from 'jose';

/** A refresh token, and the person whom it is about. */
export interface RefreshGrant {
  /** The provider's own id of the person. An answer about another person is refused. */
  subject: string;
  refreshToken: string;
}

/** @param key 32 random bytes that all instances of this server share and nobody else knows */
export function sealGrant({ subject, refreshToken }: RefreshGrant, key: Uint8Array): Promise<string> {
  const header = { alg: 'dir', enc: 'A256GCM' };
  return new EncryptJWT({ refreshToken }).setProtectedHeader(header).setSubject(subject).encrypt(key);
}

/** @throws JOSEError if it was sealed with another key, or changed since */
export async function openGrant(sealed: string, key: Uint8Array): Promise<RefreshGrant> {
  const { payload } = await jwtDecrypt<{ refreshToken: string }>(sealed, key, {
    keyManagementAlgorithms: ['dir'],
    contentEncryptionAlgorithms: ['A256GCM'],
    requiredClaims: ['sub', 'refreshToken'],
  });
  return { subject: String(payload.sub), refreshToken: payload.refreshToken };
}
