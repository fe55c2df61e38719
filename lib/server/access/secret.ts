import type { CredentialKind } from '@interlude/protocol/scope';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

const BYTES = 32;
const LETTERS: Record<CredentialKind, string> = { session: 's', token: 't', embed: 'e', code: 'c' };
const SHAPE = /^il[ctse]_[A-Za-z0-9_-]{43}$/;

/** Generates a secret: a prefix that people and secret scanners recognize, then 32 random bytes in base64url. */
export function makeSecret(kind: CredentialKind): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  const text = btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
  return `il${LETTERS[kind]}_${text}`;
}

/** True if a text has the format of our generated secrets, which can't be guessed. */
export function isSecret(text: string): boolean {
  return SHAPE.test(text);
}

/**
 * SHA-256 in hex, the stored form of a secret. A secret of 32 random bytes needs no salt. Plain JavaScript, because
 * this runs for every request, and crypto.subtle goes through the thread pool.
 */
export function textDigest(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}

/** HMAC-SHA-256 in lower-case hex. */
export function keyedDigest(key: Uint8Array, text: string): string {
  return bytesToHex(hmac(sha256, key, utf8ToBytes(text)));
}

/**
 * Compares two secrets in time that depends only on their length, which is not secret. Plain JavaScript for the same
 * reason as `textDigest`.
 */
export function sameSecret(sent: string, expected: string): boolean {
  let difference = sent.length ^ expected.length;
  for (let index = 0; index < sent.length; index++) {
    difference |= sent.charCodeAt(index) ^ expected.charCodeAt(index % expected.length);
  }
  return expected.length > 0 && difference === 0;
}
