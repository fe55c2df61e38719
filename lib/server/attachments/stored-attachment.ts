import { isHash } from '@interlude/protocol/attachments';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { columnText } from '@/db/column-text';
import type { Reader } from '@/db/reader';
import { secretHash } from '@/lib/server/access/secret';
import type { ShownDigests } from '@/lib/server/access/shown-digests';

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
