import { ATTACHMENT_TYPES, type Attachment, type AttachmentRef } from '@interlude/protocol/attachments';
import { AppError } from '@interlude/protocol/errors';
import {
  ATTACHMENT_KEPT_MS,
  MAX_MESSAGE_ATTACHMENT_BYTES,
  MAX_UNNAMED_ATTACHMENT_BYTES,
  MAX_UNNAMED_ATTACHMENTS,
} from '@interlude/protocol/limits';
import type { DueRows, RowChoice } from '@/db/row-sweep';
import { choiceArgs, isChosen } from '@/db/row-sweep';
import { attachments } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { type ShownDigests, type StoredAttachment, storedAttachment } from '@/lib/server/access/shown-digests';
import { conflict } from './refusals';

/** Bytes of one argument: a libSQL server takes about 4 MiB, and each piece is written in a few milliseconds. */
const PART_BYTES = 512 * 1024;
/** Attachments of one transaction of the sweep. */
const MAX_REMOVED = 4;

const ATTACHMENT = shapeOf(attachments, 'hash', 'name', 'mediaType', 'bytes');

/**
 * Writes the bytes of an attachment, once for each place. Sent again, it is kept for another while.
 * @param place as `uploadPlace` gives it
 * @returns as it was sent first
 * @throws AppError `conflict` (`too_many_attachments`) when the session keeps a great deal that no message names
 */
export async function keepAttachment(
  transaction: WriteTransaction,
  place: string,
  attachment: Attachment,
  content: Uint8Array<ArrayBuffer>,
  now: number,
): Promise<Attachment> {
  const { hash, name, mediaType, bytes } = attachment;
  const id = columnText(place);
  transaction.touch(`session:${id}`);
  const known = await transaction.execute({
    sql: `UPDATE attachments SET sent_at = max(sent_at, ?) WHERE session_id = ? AND hash = ?
          RETURNING ${ATTACHMENT.columns()}`,
    args: [now, id, hash],
  });
  const before = ATTACHMENT.first(known);
  if (before !== undefined) return before;
  await requireRoom(transaction, id, bytes);
  await transaction.execute({
    sql: `INSERT INTO attachments (session_id, hash, name, media_type, bytes, sent_at) VALUES (?, ?, ?, ?, ?, ?)`,
    args: [id, hash, columnText(name), mediaType, bytes, now],
  });
  for (let part = 0; part * PART_BYTES < content.byteLength; part += 1) {
    await transaction.execute({
      sql: 'INSERT INTO attachment_parts (session_id, hash, part, bytes) VALUES (?, ?, ?, ?)',
      args: [id, hash, part, content.slice(part * PART_BYTES, (part + 1) * PART_BYTES)],
    });
  }
  return attachment;
}

async function requireRoom(transaction: WriteTransaction, id: string, bytes: number): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM attachments WHERE session_id = ? AND is_named = 0`,
    args: [id],
  });
  const [kept] = rows;
  const isFull = Number(kept?.count) >= MAX_UNNAMED_ATTACHMENTS;
  if (!isFull && Number(kept?.bytes) + bytes <= MAX_UNNAMED_ATTACHMENT_BYTES) return;
  const message = `The session keeps ${kept?.count} attachments (${kept?.bytes} bytes) that no message names, and takes no more. Send the message that they are for; what no message names is removed after a day.`;
  throw conflict('too_many_attachments', message, {
    maxCount: MAX_UNNAMED_ATTACHMENTS,
    maxBytes: MAX_UNNAMED_ATTACHMENT_BYTES,
  });
}

/**
 * What a message names, by its own names. From here on it stays as long as the message, which is written behind it in the
 * same transaction.
 * @param refs by hash as the sender was shown it
 * @throws AppError `invalid_argument` for a hash that the session does not have, and for more than a message may carry
 */
export async function nameAttachments(
  transaction: WriteTransaction,
  sessionId: string,
  refs: readonly AttachmentRef[],
  digests: ShownDigests,
): Promise<Attachment[]> {
  if (refs.length === 0) return [];
  const meant: { stored: StoredAttachment | null; given: string; name: string }[] = [];
  for (const { hash: given, name } of refs) {
    meant.push({ stored: await storedAttachment(transaction, sessionId, given, digests), given, name });
  }
  transaction.touch(`session:${columnText(sessionId)}`);
  const uploads = new Map<string, Attachment>();
  for (const { stored } of meant) {
    if (stored === null || stored.place === columnText(sessionId) || uploads.has(stored.hash)) continue;
    const upload = await moveUpload(transaction, stored, columnText(sessionId));
    if (upload !== undefined) uploads.set(stored.hash, upload);
  }
  const found = await transaction.execute({
    sql: `UPDATE attachments SET is_named = 1, named_position = ?
          WHERE session_id = ? AND hash IN (SELECT value FROM json_each(?)) RETURNING ${ATTACHMENT.columns()}`,
    args: [
      await transaction.position(),
      columnText(sessionId),
      JSON.stringify(meant.map(({ stored }) => stored?.hash ?? null)),
    ],
  });
  const known = new Map(ATTACHMENT.all(found).map((attachment) => [attachment.hash, attachment]));
  const named = meant.map(({ stored, given, name }) => {
    // an upload as its sender sent it, whatever the session had before
    const attachment = stored === null ? undefined : (uploads.get(stored.hash) ?? known.get(stored.hash));
    if (attachment !== undefined) return { ...attachment, name };
    const message = `The session has no attachment ${JSON.stringify(name)} with the hash ${given}. Send its bytes (${ATTACHMENT_TYPES.join(', ')}) to POST /api/v1/sessions/:id/attachments first; what no message names is kept for a day.`;
    throw new AppError('invalid_argument', message, { details: { hash: given } });
  });
  const bytes = named.reduce((sum, attachment) => sum + attachment.bytes, 0);
  if (bytes <= MAX_MESSAGE_ATTACHMENT_BYTES) return named;
  const message = `The attachments of a message may hold ${MAX_MESSAGE_ATTACHMENT_BYTES} bytes together; these hold ${bytes}. Send them with several messages.`;
  throw new AppError('invalid_argument', message, { details: { maxBytes: MAX_MESSAGE_ATTACHMENT_BYTES } });
}

/** Moves what stands apart into its session, which may have the same bytes already. @returns as it was sent */
async function moveUpload(
  transaction: WriteTransaction,
  { place, hash }: StoredAttachment,
  session: string,
): Promise<Attachment | undefined> {
  transaction.touch(`session:${place}`);
  const found = await transaction.execute({
    sql: `SELECT ${ATTACHMENT.columns()} FROM attachments WHERE session_id = ? AND hash = ?`,
    args: [place, hash],
  });
  for (const table of ['attachments', 'attachment_parts']) {
    await transaction.execute({
      sql: `UPDATE OR IGNORE ${table} SET session_id = ? WHERE session_id = ? AND hash = ?`,
      args: [session, place, hash],
    });
    await transaction.execute({
      sql: `DELETE FROM ${table} WHERE session_id = ? AND hash = ?`,
      args: [place, hash],
    });
  }
  return ATTACHMENT.first(found);
}

/** What no message has named in its time. */
export function forgottenAttachments(now: number): DueRows {
  return {
    table: 'attachments',
    key: 'rowid',
    where: 'is_named = 0 AND sent_at <= ?1',
    args: [now - ATTACHMENT_KEPT_MS],
    order: 'sent_at',
  };
}

/** @returns how many went; call again until it is 0 */
export async function removeAttachments(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice,
): Promise<number> {
  const { where, args } = forgottenAttachments(now);
  const { rows } = await transaction.execute({
    sql: `DELETE FROM attachments WHERE rowid IN (
            SELECT rowid FROM attachments WHERE ${where} AND ${isChosen('rowid', 2)} ORDER BY sent_at LIMIT ${MAX_REMOVED})
          RETURNING session_id, hash`,
    args: [...args, ...choiceArgs(choice)],
  });
  for (const { session_id, hash } of rows) {
    // a message may just be naming it
    transaction.touch(`session:${String(session_id)}`);
    await transaction.execute({
      sql: 'DELETE FROM attachment_parts WHERE session_id = ? AND hash = ?',
      args: [session_id ?? null, hash ?? null],
    });
  }
  return rows.length;
}
