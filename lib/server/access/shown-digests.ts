import type { Database } from '@/db/client';
import { serverKey } from '@/db/server-keys';
import { may, type Principal } from './principal';
import { keyedDigest } from './secret';

/**
 * Content digests in the form that a reader may see. A plain SHA-256 beside a redacted input would confirm a guess of
 * the redacted text, so redacted readers get an HMAC-SHA-256 under a server key.
 */
export interface ShownDigests {
  /** Form of request digests. `keyed`: HMAC-SHA-256 of the plain digest, in hex; `none`: null. */
  kind: 'plain' | 'keyed' | 'none';
  request(digest: string): string | null;
  /** Keyed for every redacted reader, even one without request digests. */
  attachment(hash: string): string;
  /**
   * Id of a redacted principal, whose uploads are stored separately until a message names them; null for all others.
   */
  sender: string | null;
}

export const PLAIN_DIGESTS: ShownDigests = { kind: 'plain', request: same, attachment: same, sender: null };

const NO_REQUESTS: ShownDigests = { kind: 'none', request: () => null, attachment: same, sender: null };

/** True if the principal may answer requests; embeds never may. */
export function mayAnswer(principal: Pick<Principal, 'role' | 'kind'>): boolean {
  return may(principal, 'act') && principal.kind !== 'embed';
}

/**
 * Digests for a principal: null for requests it may not answer, keyed if it is redacted, otherwise plain. A principal
 * without read permission, such as a runner, wrote the content itself and sees plain digests.
 *
 * @throws errors of the database
 */
export async function shownDigests(
  principal: Pick<Principal, 'id' | 'role' | 'kind' | 'redacts'>,
  database: Pick<Database, 'reader' | 'writes'>,
): Promise<ShownDigests> {
  if (!may(principal, 'read')) return PLAIN_DIGESTS;
  if (!principal.redacts) return mayAnswer(principal) ? PLAIN_DIGESTS : NO_REQUESTS;
  const key = await serverKey(database, 'digest');
  const keyed = (digest: string) => keyedDigest(key, digest);
  const own = { attachment: keyed, sender: principal.id };
  return mayAnswer(principal)
    ? { kind: 'keyed', request: keyed, ...own }
    : { kind: 'none', request: () => null, ...own };
}

function same(digest: string): string {
  return digest;
}
