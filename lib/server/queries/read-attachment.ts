import { isImageType, isTextType, MAX_ATTACHMENT_NAME } from '@interlude/protocol/attachments';
import { AppError, toAbortError } from '@interlude/protocol/errors';
import type { AttachmentBytesQuery } from '@interlude/protocol/queries';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { Reader } from '@/db/reader';
import { attachments } from '@/db/schema';
import { agentsIn, sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import type { Principal } from '@/lib/server/access/principal';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { abortableBody } from '@/lib/server/access/streamed-response';
import { storedAttachment } from '@/lib/server/attachments/stored-attachment';

const ATTACHMENT = shapeOf(attachments, 'name', 'mediaType', 'bytes');

/**
 * `GET /attachments/:hash?session=&name=`: the bytes of a session's attachment.
 *
 * Attachments may be hostile. The response has one of a few types and forbids sniffing and scripts
 * (`response-headers.mjs`). Browsers show only images, and download everything else.
 *
 * @throws AppError `not_found`, also for bytes of another session; `forbidden` for a redacted reader, except for images
 */
export async function getAttachment(
  {
    ids: { hash: given },
    query: { session, name: requestedName },
    request,
    principal,
    digests,
    whenOver,
  }: RequestContext<'hash', { query: AttachmentBytesQuery }>,
  { database }: ServerContext,
): Promise<Response> {
  const sessionId = principal.kind === 'runner' ? await sessionOf(database.reader, principal, session, given) : session;
  const stored = await storedAttachment(database.reader, sessionId, given, digests);
  const key = stored === null ? [] : [stored.place, stored.hash];
  const found =
    stored === null
      ? undefined
      : await database.reader.execute({
          sql: `SELECT ${ATTACHMENT.columns()} FROM attachments WHERE session_id = ? AND hash = ?
          AND EXISTS (SELECT 1 FROM sessions WHERE id = ? AND ${sessionsIn(principal.scope, 'id')})`,
          args: [...key, columnText(sessionId)],
        });
  const attachment = ATTACHMENT.first(found);
  if (attachment === undefined) {
    const message = `The session ${JSON.stringify(session)} has no attachment ${JSON.stringify(given)}. Unused uploads are removed after a day.`;
    throw new AppError('not_found', message);
  }
  const { name, mediaType, bytes } = attachment;
  if (principal.redacts && !isImageType(mediaType)) {
    throw new AppError(
      'forbidden',
      'This credential gets redacted responses, and files can’t be redacted. Use a credential that may see secrets.',
    );
  }
  // Revalidated for each use, so the browser does not show it after sign-out.
  const cacheHeaders = { etag: `"${given}"`, 'cache-control': 'private, no-cache, no-transform' };
  if (request.headers.get('if-none-match')?.includes(cacheHeaders.etag))
    return markRedacted(new Response(null, { status: 304, headers: cacheHeaders }));
  let part = 0;
  // keeps one part in memory at a time
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = () =>
        database.reader.execute({
          sql: 'SELECT bytes FROM attachment_parts WHERE session_id = ? AND hash = ? AND part = ?',
          args: [...key, part],
        });
      const { rows } = await database.reads.run(principal.credentialId, read, { continues: true }).catch((error) => {
        throw error instanceof AppError ? toAbortError(error) : error;
      });
      const [row] = rows;
      if (row === undefined) return controller.close();
      part += 1;
      controller.enqueue(new Uint8Array(row.bytes as ArrayBuffer));
    },
  });
  return markRedacted(
    new Response(abortableBody(body, whenOver), {
      headers: {
        'content-type': servedType(mediaType),
        'content-length': String(bytes),
        'content-disposition': `${isImageType(mediaType) ? 'inline' : 'attachment'}; ${fileName(requestedName ?? name)}`,
        ...cacheHeaders,
      },
    }),
  );
}

/** Resolves a runner's alias for a session that has the attachment. */
async function sessionOf(
  reader: Pick<Reader, 'execute'>,
  { scope }: Principal,
  id: string,
  hash: string,
): Promise<string> {
  const { rows } = await reader.execute({
    sql: `SELECT session_id FROM session_aliases AS a WHERE alias = ? AND ${agentsIn(scope)}
      AND EXISTS (SELECT 1 FROM attachments WHERE session_id = a.session_id AND hash = ?) LIMIT 1`,
    args: [columnText(id), hash],
  });
  return rows[0] === undefined ? id : String(rows[0].session_id);
}

/** HTML, XML and scripts are served as plain text. */
function servedType(mediaType: string): string {
  if (isTextType(mediaType)) return 'text/plain; charset=utf-8';
  return isImageType(mediaType) || mediaType === 'application/pdf' ? mediaType : 'application/octet-stream';
}

/** Limits the length and removes invisible and bidirectional characters. @see RFC 6266 */
function fileName(given: string): string {
  const name = given
    .slice(0, MAX_ATTACHMENT_NAME)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '_');
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  return `filename="${name.replace(/[^\w.-]/g, '_')}"; filename*=UTF-8''${encoded}`;
}
