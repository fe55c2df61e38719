import { isHash } from '@interlude/protocol/attachments';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import type { Reader } from '@/db/reader';
import { columnText } from '@/db/table-rows';
import { textDigest } from '@/lib/server/access/secret';
import type { ShownDigests } from '@/lib/server/access/shown-digests';

/** An attachment's key. `place` is its session's id, or the separate place of a redacted sender's uploads. */
export interface StoredAttachment {
  place: string;
  hash: string;
}

/**
 * Finds a session's attachment.
 *
 * @param shownHash the hash in the form that the reader sees; no other form is accepted
 * @returns null if no attachment is shown to the reader under this hash
 */
export async function storedAttachment(
  reader: Pick<Reader, 'execute'>,
  sessionId: string,
  shownHash: string,
  digests: ShownDigests,
): Promise<StoredAttachment | null> {
  if (!isHash(shownHash)) return null;
  const session = columnText(sessionId);
  if (digests.sender === null) return { place: session, hash: shownHash };
  const uploads = uploadPlace(session, digests);
  const { rows } = await reader.execute({
    sql: 'SELECT session_id, hash FROM attachments WHERE session_id IN (?, ?)',
    args: [session, uploads],
  });
  const stored = rows.map(({ session_id, hash }) => ({ place: String(session_id), hash: String(hash) }));
  const hasHash = ({ place, hash }: StoredAttachment) =>
    digests.attachment(place === uploads ? uploadHash(hash, digests) : hash) === shownHash;
  return stored.find(hasHash) ?? null;
}

/**
 * The place of a session's uploads until a message names them. Redacted senders get separate places: in a shared
 * one, the response would reveal that another sender had uploaded the same bytes.
 */
export function uploadPlace(sessionId: string, { sender }: Pick<ShownDigests, 'sender'>): string {
  const session = columnText(sessionId);
  // longer than any session id, so it can't equal one
  return sender === null ? session : `${sender}\n${session}`.padStart(MAX_ID_LENGTH + 1);
}

/** The hash to return for an upload, before it is keyed; distinct for each redacted sender. */
export function uploadHash(hash: string, { sender }: Pick<ShownDigests, 'sender'>): string {
  return sender === null ? hash : textDigest(`${sender}\n${hash}`);
}
