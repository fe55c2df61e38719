import type { Attachment } from '@interlude/protocol/attachments';
import { AppError } from '@interlude/protocol/errors';
import { MAX_ATTACHMENT_BYTES } from '@interlude/protocol/limits';
import type { AttachmentQuery } from '@interlude/protocol/queries';
import { columnText } from '@/db/table-rows';
import type { Asked } from '@/lib/server/access/asked';
import type { ServerContext } from '@/lib/server/access/server-context';
import { uploadHash, uploadPlace } from '@/lib/server/access/shown-digests';
import { readBody } from '@/lib/server/ingest/read-body';
import { keepAttachment } from './attachment-rows';
import { mediaTypeOf } from './media-type';
import { missing } from './refusals';

/**
 * `POST /sessions/:id/attachments?name=`: the bytes of an image or file that a message to the session's agent will name.
 *
 * @returns once they are on disk; the same bytes again are the same attachment
 * @throws AppError `not_found`; `too_large`, before the body is read to its end; `invalid_argument` for what is not taken
 */
export async function postAttachment(
  { ids: { sessionId }, query: { name }, request, digests }: Asked<'sessionId', { query: AttachmentQuery }>,
  { database, now }: ServerContext,
): Promise<Attachment> {
  // before anything is read that nobody could keep
  const known = await database.reader.execute({
    sql: 'SELECT 1 FROM sessions WHERE id = ?',
    args: [columnText(sessionId)],
  });
  if (known.rows.length === 0) throw missing('session', sessionId, 'GET /api/v1/sessions lists them.');
  const content = await readBody(request, MAX_ATTACHMENT_BYTES, ATTACHMENT);
  if (content.byteLength === 0) {
    throw new AppError('invalid_argument', 'The body is empty. Send the bytes of the attachment as they are.');
  }
  const mediaType = mediaTypeOf(request.headers.get('content-type'), content);
  const attachment = { hash: await sha256(content), name, mediaType, bytes: content.byteLength };
  const kept = await database.writes.run(
    (transaction) => keepAttachment(transaction, uploadPlace(sessionId, digests), attachment, content, now()),
    { bytes: content.byteLength },
  );
  return { ...kept, hash: uploadHash(kept.hash, digests) };
}

const ATTACHMENT = { what: 'An attachment', advice: 'Attach a smaller file, or a part of it.' };

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
