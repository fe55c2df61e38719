import type { Database } from '@/db/client';
import { serverKey } from '@/db/server-keys';
import { may, type Principal } from './principal';
import { keyedDigest } from './secret';

/**
 * How a reader sees digests over content. A plain SHA-256 beside a redacted input confirms guesses of what was redacted,
 * so that a redacted reader gets HMAC-SHA-256 of it under a key of the server, which confirms none.
 */
export interface ShownDigests {
  /** Of requests. `keyed`: HMAC-SHA-256 of the plain digest, in hex; `none`: null. */
  kind: 'plain' | 'keyed' | 'none';
  /** @param digest that of a request */
  request(digest: string): string | null;
  /** @param hash that of an attachment. A redacted reader gets it keyed, also without digests of requests */
  attachment(hash: string): string;
  /** The id of a redacted principal, whose uploads stand apart until a message names them. Null for all others. */
  sender: string | null;
}

export const PLAIN_DIGESTS: ShownDigests = { kind: 'plain', request: same, attachment: same, sender: null };

const NO_REQUESTS: ShownDigests = { kind: 'none', request: () => null, attachment: same, sender: null };

/** True if the principal may answer requests; embeds never may. */
export function mayAnswer(principal: Pick<Principal, 'role' | 'kind'>): boolean {
  return may(principal, 'act') && principal.kind !== 'embed';
}

/**
 * Digests for a principal: null for requests that it may not answer, keyed if it is redacted, otherwise plain. A principal that reads no dashboard, such as a runner, sees them plain: it wrote the content itself.
 *
 * @throws what the database throws
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
