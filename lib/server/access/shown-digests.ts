import { isHash } from '@interlude/protocol/attachments';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import type { Database } from '@/db/client';
import type { Reader } from '@/db/reader';
import { serverKey } from '@/db/server-keys';
import { columnText } from '@/db/table-rows';
import { may, type Principal } from './principal';
import { keyedDigest, secretHash } from './secret';

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

/** Where an attachment is stored: `place` is its session's id, or where a redacted sender's uploads to it stand apart. */
export interface StoredAttachment {
  place: string;
  hash: string;
}

/**
 * The attachment of a session that a reader asks for.
 *
 * @param given the hash as the reader was shown it; no other form is accepted
 * @returns null if the session has none that the reader is shown under it
 */
export async function storedAttachment(
  reader: Pick<Reader, 'execute'>,
  sessionId: string,
  given: string,
  digests: ShownDigests,
): Promise<StoredAttachment | null> {
  if (!isHash(given)) return null;
  const session = columnText(sessionId);
  if (digests.sender === null) return { place: session, hash: given };
  const uploads = uploadPlace(session, digests);
  const { rows } = await reader.execute({
    sql: 'SELECT session_id, hash FROM attachments WHERE session_id IN (?, ?)',
    args: [session, uploads],
  });
  const stored = rows.map(({ session_id, hash }) => ({ place: String(session_id), hash: String(hash) }));
  const isGiven = ({ place, hash }: StoredAttachment) =>
    digests.attachment(place === uploads ? uploadHash(hash, digests) : hash) === given;
  return stored.find(isGiven) ?? null;
}

/**
 * Where uploads to a session are stored until a message names them. Those of a redacted sender have a place of their own:
 * in a shared one, the answer would reveal whether another sender had uploaded the same bytes.
 */
export function uploadPlace(sessionId: string, { sender }: Pick<ShownDigests, 'sender'>): string {
  const session = columnText(sessionId);
  // longer than any id, so that no session has it
  return sender === null ? session : `${sender}\n${session}`.padStart(MAX_ID_LENGTH + 1);
}

/** The hash that an upload is answered with, before it is keyed: each redacted sender has one of its own for it. */
export function uploadHash(hash: string, { sender }: Pick<ShownDigests, 'sender'>): string {
  return sender === null ? hash : secretHash(`${sender}\n${hash}`);
}

function same(digest: string): string {
  return digest;
}
