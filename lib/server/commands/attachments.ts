import { ATTACHMENT_TYPES, type AttachmentRef, isTextType } from '@interlude/protocol/attachments';
import { AppError } from '@interlude/protocol/errors';
import type { Attachment } from '@interlude/protocol/field-schemas';
import {
  ATTACHMENT_KEPT_MS,
  MAX_ATTACHMENT_BYTES,
  MAX_MESSAGE_ATTACHMENT_BYTES,
  MAX_UNNAMED_ATTACHMENT_BYTES,
  MAX_UNNAMED_ATTACHMENTS,
} from '@interlude/protocol/limits';
import type { AttachmentQuery } from '@interlude/protocol/queries';
import { choiceArgs, type DueRows, isChosen, type RowChoice } from '@/db/row-sweep';
import { attachments } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import type { ShownDigests } from '@/lib/server/access/shown-digests';
import {
  type StoredAttachment,
  storedAttachment,
  uploadHash,
  uploadPlace,
} from '@/lib/server/attachments/stored-attachment';
import { readBody } from '@/lib/server/ingest/read-body';
import { conflict, requireSession } from './accept-command';

/**
 * Bytes per part, which is one argument. A libSQL server accepts about 4 MiB, and writing a part takes a few
 * milliseconds.
 */
const PART_BYTES = 512 * 1024;
/** Attachments per transaction of the sweep. */
const MAX_REMOVED = 4;

const ATTACHMENT = shapeOf(attachments, 'hash', 'name', 'mediaType', 'bytes');
const BODY_LIMIT = { subject: 'An attachment', advice: 'Attach a smaller file, or a part of it.' };

/**
 * `POST /sessions/:id/attachments?name=`: uploads an image or file for a later message.
 *
 * @returns once the attachment is on disk; repeated uploads of the same bytes return the same attachment
 * @throws AppError `not_found`; `too_large` before the whole body is read; `invalid_argument` for an unsupported type;
 *   `conflict`: `too_many_attachments`
 */
export async function postAttachment(
  { ids: { sessionId }, query: { name }, request, digests }: RequestContext<'sessionId', { query: AttachmentQuery }>,
  { database, now }: ServerContext,
): Promise<Attachment> {
  // Refuses an unknown session before reading the body.
  await requireSession(database.reader, sessionId);
  const content = await readBody(request, MAX_ATTACHMENT_BYTES, BODY_LIMIT);
  if (content.byteLength === 0) {
    throw new AppError('invalid_argument', 'The body is empty. Send the attachment’s raw bytes.');
  }
  const mediaType = detectMediaType(request.headers.get('content-type'), content);
  const attachment = { hash: await sha256(content), name, mediaType, bytes: content.byteLength };
  const stored = await database.writes.run(
    (transaction) => storeUpload(transaction, uploadPlace(sessionId, digests), attachment, content, now()),
    { bytes: content.byteLength },
  );
  return { ...stored, hash: uploadHash(stored.hash, digests) };
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Magic numbers; null matches any byte. */
const SIGNATURES: Record<string, readonly (readonly (number | null)[])[]> = {
  'image/png': [bytesOf('\x89PNG\r\n\x1a\n')],
  'image/jpeg': [[0xff, 0xd8, 0xff]],
  'image/gif': [bytesOf('GIF87a'), bytesOf('GIF89a')],
  'image/webp': [[...bytesOf('RIFF'), null, null, null, null, ...bytesOf('WEBP')]],
  'application/pdf': [bytesOf('%PDF-')],
};

/**
 * Detects an image or PDF by its signature, regardless of the claimed type. Everything else must be text in UTF-8.
 *
 * @param claimed the Content-Type, if any
 * @throws AppError `invalid_argument` with the supported types
 */
export function detectMediaType(claimed: string | null, bytes: Uint8Array): string {
  for (const [type, signatures] of Object.entries(SIGNATURES)) {
    if (signatures.some((sign) => sign.every((byte, index) => byte === null || bytes[index] === byte))) return type;
  }
  const type = (claimed ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (Object.hasOwn(SIGNATURES, type)) throw unsupported(`The Content-Type is ${type}, but the bytes are not`);
  if (!isTextType(type)) throw unsupported(type === '' ? 'The Content-Type is missing' : `${type} is not supported`);
  if (!isText(bytes)) throw unsupported('The file is not text in UTF-8');
  return type;
}

/** Text for agents and browsers never contains a NUL. */
function isText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function unsupported(why: string): AppError {
  const message = `${why}. Attach one of ${ATTACHMENT_TYPES.join(', ')}.`;
  return new AppError('invalid_argument', message, { details: { mediaTypes: ATTACHMENT_TYPES } });
}

function bytesOf(text: string): number[] {
  return [...text].map((character) => character.charCodeAt(0));
}

/**
 * Stores an upload once per place. A repeated upload restarts the retention time.
 * @param place from `uploadPlace`
 * @returns the first upload of these bytes
 */
async function storeUpload(
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
  const [usage] = rows;
  const isFull = Number(usage?.count) >= MAX_UNNAMED_ATTACHMENTS;
  if (!isFull && Number(usage?.bytes) + bytes <= MAX_UNNAMED_ATTACHMENT_BYTES) return;
  const message = `The session holds ${usage?.count} uploads (${usage?.bytes} bytes) that no message uses yet, and accepts no more. Send their message, or wait: unused uploads are removed after a day.`;
  throw conflict('too_many_attachments', message, {
    maxCount: MAX_UNNAMED_ATTACHMENTS,
    maxBytes: MAX_UNNAMED_ATTACHMENT_BYTES,
  });
}

/**
 * Attaches uploads to the message that the same transaction writes. From then on they are kept as long as the message.
 *
 * @param refs references with the hashes that the sender was shown
 * @throws AppError `invalid_argument` for an unknown hash, or for more bytes than a message may carry
 */
export async function nameAttachments(
  transaction: WriteTransaction,
  sessionId: string,
  refs: readonly AttachmentRef[],
  digests: ShownDigests,
): Promise<Attachment[]> {
  if (refs.length === 0) return [];
  const requested: { stored: StoredAttachment | null; shownHash: string; name: string }[] = [];
  for (const { hash: shownHash, name } of refs) {
    requested.push({ stored: await storedAttachment(transaction, sessionId, shownHash, digests), shownHash, name });
  }
  const session = columnText(sessionId);
  transaction.touch(`session:${session}`);
  const uploads = new Map<string, Attachment>();
  for (const { stored } of requested) {
    if (stored === null || stored.place === session || uploads.has(stored.hash)) continue;
    const upload = await moveUpload(transaction, stored, session);
    if (upload !== undefined) uploads.set(stored.hash, upload);
  }
  const found = await transaction.execute({
    sql: `UPDATE attachments SET is_named = 1, named_position = ?
          WHERE session_id = ? AND hash IN (SELECT value FROM json_each(?)) RETURNING ${ATTACHMENT.columns()}`,
    args: [await transaction.position(), session, JSON.stringify(requested.map(({ stored }) => stored?.hash ?? null))],
  });
  const known = new Map(ATTACHMENT.all(found).map((attachment) => [attachment.hash, attachment]));
  const named = requested.map(({ stored, shownHash, name }) => {
    // The sender's own upload, even if the session had the same bytes before.
    const attachment = stored === null ? undefined : (uploads.get(stored.hash) ?? known.get(stored.hash));
    if (attachment !== undefined) return { ...attachment, name };
    const message = `The session has no attachment ${JSON.stringify(name)} with the hash ${shownHash}. Upload it to POST /api/v1/sessions/:id/attachments first (${ATTACHMENT_TYPES.join(', ')}). Unused uploads are removed after a day.`;
    throw new AppError('invalid_argument', message, { details: { hash: shownHash } });
  });
  const bytes = named.reduce((sum, attachment) => sum + attachment.bytes, 0);
  if (bytes <= MAX_MESSAGE_ATTACHMENT_BYTES) return named;
  const message = `A message’s attachments may total ${MAX_MESSAGE_ATTACHMENT_BYTES} bytes, and these total ${bytes}. Split them across several messages.`;
  throw new AppError('invalid_argument', message, { details: { maxBytes: MAX_MESSAGE_ATTACHMENT_BYTES } });
}

/** Moves an upload from the sender's own place into the session, which may already have the same bytes. */
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
    await transaction.execute({ sql: `DELETE FROM ${table} WHERE session_id = ? AND hash = ?`, args: [place, hash] });
  }
  return ATTACHMENT.first(found);
}

/** Expired uploads that no message has used. */
export function unnamedUploads(now: number): DueRows {
  return {
    table: 'attachments',
    key: 'rowid',
    where: 'is_named = 0 AND sent_at <= ?1',
    args: [now - ATTACHMENT_KEPT_MS],
    order: 'sent_at',
  };
}

/** @returns the number of removed uploads; call again until it is 0 */
export async function removeUploads(transaction: WriteTransaction, now: number, choice: RowChoice): Promise<number> {
  const { where, args } = unnamedUploads(now);
  const { rows } = await transaction.execute({
    sql: `DELETE FROM attachments WHERE rowid IN (
            SELECT rowid FROM attachments WHERE ${where} AND ${isChosen('rowid', 2)} ORDER BY sent_at LIMIT ${MAX_REMOVED})
          RETURNING session_id, hash`,
    args: [...args, ...choiceArgs(choice)],
  });
  for (const { session_id, hash } of rows) {
    // A message may name the upload concurrently.
    transaction.touch(`session:${String(session_id)}`);
    await transaction.execute({
      sql: 'DELETE FROM attachment_parts WHERE session_id = ? AND hash = ?',
      args: [session_id ?? null, hash ?? null],
    });
  }
  return rows.length;
}
