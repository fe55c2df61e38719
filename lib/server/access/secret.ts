import type { CredentialKind } from '@interlude/protocol/scope';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

const BYTES = 32;
const LETTERS: Record<CredentialKind, string> = { session: 's', token: 't', embed: 'e', code: 'c' };
const SHAPE = /^il[ctse]_[A-Za-z0-9_-]{43}$/;

/**
 * A new secret: 32 random bytes in base64url, behind a prefix by which people and scanners know it.
 */
export function makeSecret(kind: CredentialKind): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  const text = btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
  return `il${LETTERS[kind]}_${text}`;
}

/** Whether it can be one of ours, which nobody finds by guessing. */
export function isSecret(text: string): boolean {
  return SHAPE.test(text);
}

/**
 * What the database has of a secret. It needs no salt: 32 random bytes are in no list. In plain JavaScript, because it
 * runs for every request and a digest from crypto.subtle is a trip through the thread pool.
 */
export function secretHash(secret: string): string {
  return bytesToHex(sha256(utf8ToBytes(secret)));
}

/** HMAC-SHA-256 of a text, in lower-case hex. */
export function keyedDigest(key: Uint8Array, text: string): string {
  return bytesToHex(hmac(sha256, key, utf8ToBytes(text)));
}

/**
 * Whether two secrets are the same, in a time that does not tell where they differ: every code unit of the one that was
 * sent is looked at. Their length is no secret. In plain JavaScript, because it runs for every request and a digest
 * from crypto.subtle is a trip through the thread pool.
 */
export function sameSecret(sent: string, ours: string): boolean {
  let difference = sent.length ^ ours.length;
  for (let index = 0; index < sent.length; index++) {
    difference |= sent.charCodeAt(index) ^ ours.charCodeAt(index % ours.length);
  }
  return ours.length > 0 && difference === 0;
}
