import { isImageType, isTextType, MAX_ATTACHMENT_NAME } from '@interlude/protocol/attachments';
import { AppError, brokenOff } from '@interlude/protocol/errors';
import type { AttachmentBytesQuery } from '@interlude/protocol/queries';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { Reader } from '@/db/reader';
import { attachments } from '@/db/schema';
import { agentsIn, sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import type { Asked } from '@/lib/server/access/asked';
import { cutShort } from '@/lib/server/access/cut-short';
import type { Principal } from '@/lib/server/access/principal';
import type { ServerContext } from '@/lib/server/access/server-context';
import { storedAttachment } from '@/lib/server/access/shown-digests';

const ATTACHMENT = shapeOf(attachments, 'name', 'mediaType', 'bytes');

/**
 * `GET /attachments/:hash?session=&name=`: the bytes, to whoever may read the session that has them.
 *
 * Failure: what a person attached is as hostile as anything. A browser is told one of a few types and, as in every answer
 * (`response-headers.mjs`), never to guess and to run nothing; it shows nothing but images, and saves everything else.
 *
 * @throws AppError `not_found`, also for bytes that another session has
 */
export async function getAttachment(
  {
    ids: { hash: given },
    query: { session, name: asked },
    request,
    principal,
    digests,
    whenOver,
  }: Asked<'hash', { query: AttachmentBytesQuery }>,
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
    const message = `The session ${JSON.stringify(session)} has no attachment ${JSON.stringify(given)}. One that no message names is removed after a day.`;
    throw new AppError('not_found', message);
  }
  const { name, mediaType, bytes } = attachment;
  if (principal.redacts && !isImageType(mediaType)) {
    throw new AppError(
      'forbidden',
      'Nobody takes secrets out of files, and this credential is told none. Ask with one that may see them.',
    );
  }
  // Asked for each time, so that nobody sees it who has signed out; sent once.
  const kept = { etag: `"${given}"`, 'cache-control': 'private, no-cache, no-transform' };
  if (request.headers.get('if-none-match')?.includes(kept.etag))
    return markRedacted(new Response(null, { status: 304, headers: kept }));
  let part = 0;
  // one piece in memory at a time
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = () =>
        database.reader.execute({
          sql: 'SELECT bytes FROM attachment_parts WHERE session_id = ? AND hash = ? AND part = ?',
          args: [...key, part],
        });
      const { rows } = await database.reads.run(principal.credentialId, read, { continues: true }).catch((error) => {
        throw error instanceof AppError ? brokenOff(error) : error;
      });
      const [row] = rows;
      if (row === undefined) return controller.close();
      part += 1;
      controller.enqueue(new Uint8Array(row.bytes as ArrayBuffer));
    },
  });
  return markRedacted(
    new Response(cutShort(body, { whenOver }), {
      headers: {
        'content-type': shownType(mediaType),
        'content-length': String(bytes),
        'content-disposition': `${isImageType(mediaType) ? 'inline' : 'attachment'}; ${fileName(asked ?? name)}`,
        ...kept,
      },
    }),
  );
}

/** The session that a runner knows by this id and that has the attachment. */
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

/** HTML, XML and scripts are text here. */
function shownType(mediaType: string): string {
  if (isTextType(mediaType)) return 'text/plain; charset=utf-8';
  return isImageType(mediaType) || mediaType === 'application/pdf' ? mediaType : 'application/octet-stream';
}

/** Short enough for a header, and without what can't be seen and turns a name around. @see RFC 6266 */
function fileName(given: string): string {
  const name = given
    .slice(0, MAX_ATTACHMENT_NAME)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '_');
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  return `filename="${name.replace(/[^\w.-]/g, '_')}"; filename*=UTF-8''${encoded}`;
}
