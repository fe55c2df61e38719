import { ATTACHMENT_TYPES, isTextType } from '@interlude/protocol/attachments';
import { AppError } from '@interlude/protocol/errors';

/** How each type that has a sign of its own begins; `null` is any byte. */
const SIGNS: Record<string, readonly (readonly (number | null)[])[]> = {
  'image/png': [bytesOf('\x89PNG\r\n\x1a\n')],
  'image/jpeg': [[0xff, 0xd8, 0xff]],
  'image/gif': [bytesOf('GIF87a'), bytesOf('GIF89a')],
  'image/webp': [[...bytesOf('RIFF'), null, null, null, null, ...bytesOf('WEBP')]],
  'application/pdf': [bytesOf('%PDF-')],
};

/**
 * Of which type some bytes are. What begins like an image or a PDF is that, whatever its sender says; what was said to be
 * one and does not is refused. Text must be UTF-8.
 *
 * @param claimed a Content-Type, which may be missing or have parameters
 * @throws AppError `invalid_argument` that names what is taken
 */
export function mediaTypeOf(claimed: string | null, bytes: Uint8Array): string {
  for (const [type, signs] of Object.entries(SIGNS)) {
    if (signs.some((sign) => sign.every((byte, at) => byte === null || bytes[at] === byte))) return type;
  }
  const said = (claimed ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (Object.hasOwn(SIGNS, said)) throw refused(`It is sent as ${said}, and its bytes are not`);
  if (!isTextType(said)) throw refused(said === '' ? 'It has no Content-Type' : `${said} is not taken`);
  if (!isText(bytes)) throw refused('It is no text in UTF-8');
  return said;
}

/** Agents and browsers are given it as text: a NUL is in none. */
function isText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function refused(why: string): AppError {
  const message = `${why}. Attach one of ${ATTACHMENT_TYPES.join(', ')}.`;
  return new AppError('invalid_argument', message, { details: { mediaTypes: ATTACHMENT_TYPES } });
}

function bytesOf(text: string): number[] {
  return [...text].map((character) => character.charCodeAt(0));
}
