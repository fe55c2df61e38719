import { AppError } from '@/lib/protocol/errors';
import { MAX_REQUEST_BYTES } from '@/lib/protocol/limits';
import { readUpTo } from './read-up-to';
import { unpack } from './unpack';

/** A refused body is still read this far, so that the sender sees why, instead of a broken connection. */
const DRAIN_BYTES = 4 * MAX_REQUEST_BYTES;

/**
 * The body's bytes, unpacked. The limit applies while reading, both to what arrives and to what it unpacks to, so neither
 * an endless body nor a zip bomb takes more memory than the limit.
 *
 * @throws AppError `too_large`, `unsupported_encoding`, or `malformed` when gzip data is damaged or ends early
 */
export async function readBody(request: Request): Promise<Uint8Array<ArrayBuffer>> {
  const encoding = (request.headers.get('content-encoding') ?? '').trim().toLowerCase();
  if (encoding !== '' && encoding !== 'identity' && encoding !== 'gzip' && encoding !== 'x-gzip') {
    throw new AppError('unsupported_encoding', 'The body must be sent as it is or with Content-Encoding: gzip.', {
      headers: { 'accept-encoding': 'gzip' },
    });
  }
  if (request.body === null) return new Uint8Array(0);
  const raw = await readUpTo(request.body, MAX_REQUEST_BYTES, DRAIN_BYTES).catch((cause) => {
    throw new AppError('malformed', 'The body ended before it was complete. Send it again.', { cause });
  });
  if (raw === null) throw tooLarge();
  if (encoding === '' || encoding === 'identity') return raw;
  const unpacked = await unpack(raw, MAX_REQUEST_BYTES);
  if (unpacked.kind === 'unpacked') return unpacked.bytes;
  if (unpacked.kind === 'too-large') throw tooLarge();
  throw new AppError('malformed', 'The body is not valid gzip. Pack it again or send it as it is.');
}

function tooLarge(): AppError {
  const message = `A request may hold ${MAX_REQUEST_BYTES} bytes, unpacked. Send fewer records at once.`;
  return new AppError('too_large', message, { details: { maxBytes: MAX_REQUEST_BYTES } });
}
