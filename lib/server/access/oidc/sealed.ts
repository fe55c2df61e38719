import { EncryptJWT, type JWTDecryptOptions, type JWTPayload, jwtDecrypt } from 'jose';

/**
 * Encrypts claims as a JWE (`dir`, `A256GCM`).
 *
 * @param key 32 random bytes that only the instances of this server know
 */
export function seal(claims: JWTPayload, key: Uint8Array): Promise<string> {
  return new EncryptJWT(claims).setProtectedHeader({ alg: 'dir', enc: 'A256GCM' }).encrypt(key);
}

/** @throws JOSEError if it was sealed with another key, was changed since, or does not meet the options */
export async function open<Claims>(sealed: string, key: Uint8Array, options: JWTDecryptOptions) {
  const { payload } = await jwtDecrypt<Claims>(sealed, key, {
    keyManagementAlgorithms: ['dir'],
    contentEncryptionAlgorithms: ['A256GCM'],
    ...options,
  });
  return payload;
}
