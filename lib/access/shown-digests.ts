import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import type { Reader } from '@/db/reader';
import { serverKey } from '@/db/server-keys';
import { isHash } from '@/lib/protocol/attachments';
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
}

export const PLAIN_DIGESTS: ShownDigests = { kind: 'plain', request: same, attachment: same };

const NO_REQUESTS: ShownDigests = { kind: 'none', request: () => null, attachment: same };

/** True if the principal may answer requests; embeds never may. */
export function mayAnswer(principal: Pick<Principal, 'role' | 'kind'>): boolean {
  return may(principal, 'act') && principal.kind !== 'embed';
}

/**
 * Digests as a principal sees them: none of requests without the right to answer, keyed ones if it is redacted, else
 * plain ones. A principal that reads no dashboard, such as a runner, sees them plain: it wrote the content itself.
 *
 * @throws what the database throws
 */
export async function shownDigests(
  principal: Pick<Principal, 'role' | 'kind' | 'redacts'>,
  database: Pick<Database, 'reader' | 'writes'>,
): Promise<ShownDigests> {
  if (!may(principal, 'read')) return PLAIN_DIGESTS;
  if (!principal.redacts) return mayAnswer(principal) ? PLAIN_DIGESTS : NO_REQUESTS;
  const key = await serverKey(database, 'digest');
  const keyed = (digest: string) => keyedDigest(key, digest);
  return mayAnswer(principal)
    ? { kind: 'keyed', request: keyed, attachment: keyed }
    : { kind: 'none', request: () => null, attachment: keyed };
}

/**
 * The stored hash of a session's attachment.
 *
 * @param given the hash as the reader was shown it; no other form is accepted
 * @returns null if the session has none that the reader is shown under it
 */
export async function storedHash(
  reader: Pick<Reader, 'execute'>,
  sessionId: string,
  given: string,
  digests: ShownDigests,
): Promise<string | null> {
  if (!isHash(given)) return null;
  if (digests.attachment === same) return given;
  const { rows } = await reader.execute({
    sql: 'SELECT hash FROM attachments WHERE session_id = ?',
    args: [columnText(sessionId)],
  });
  return rows.map(({ hash }) => String(hash)).find((hash) => digests.attachment(hash) === given) ?? null;
}

function same(digest: string): string {
  return digest;
}
