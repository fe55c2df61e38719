import { AppError } from '@interlude/protocol/errors';
import { MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import { readUpTo } from './read-up-to';
import { unpack } from './unpack';

/** A refused body is still read this far, so that the sender sees why, instead of a broken connection. */
const DRAIN_BYTES = 4 * MAX_REQUEST_BYTES;
/** What most bodies are, as their refusal says it. */
const REQUEST = { what: 'A request', advice: 'Send fewer records at once.' };

/**
 * The body's bytes, unpacked. The limit applies while reading, both to what arrives and to what it unpacks to, so neither
 * an endless body nor a zip bomb takes more memory than the limit.
 *
 * @param maxBytes most of it
 * @throws AppError `too_large`, `unsupported_encoding`, or `malformed` when gzip data is damaged or ends early
 */
export async function readBody(
  request: Request,
  maxBytes = MAX_REQUEST_BYTES,
  said = REQUEST,
): Promise<Uint8Array<ArrayBuffer>> {
  const encoding = (request.headers.get('content-encoding') ?? '').trim().toLowerCase();
  if (encoding !== '' && encoding !== 'identity' && encoding !== 'gzip' && encoding !== 'x-gzip') {
    throw new AppError('unsupported_encoding', 'The body must be sent as it is or with Content-Encoding: gzip.', {
      headers: { 'accept-encoding': 'gzip' },
    });
  }
  if (request.body === null) return new Uint8Array(0);
  const raw = await readUpTo(request.body, maxBytes, DRAIN_BYTES).catch((cause) => {
    throw new AppError('malformed', 'The body ended before it was complete. Send it again.', { cause });
  });
  if (raw === null) throw tooLarge(maxBytes, said);
  if (encoding === '' || encoding === 'identity') return raw;
  const unpacked = await unpack(raw, maxBytes);
  if (unpacked.kind === 'unpacked') return unpacked.bytes;
  if (unpacked.kind === 'too-large') throw tooLarge(maxBytes, said);
  throw new AppError('malformed', 'The body is not valid gzip. Pack it again or send it as it is.');
}

function tooLarge(maxBytes: number, { what, advice }: typeof REQUEST): AppError {
  return new AppError('too_large', `${what} may hold ${maxBytes} bytes, unpacked. ${advice}`, {
    details: { maxBytes },
  });
}
