import { AppError } from '@interlude/protocol/errors';
import { fieldsOf } from '@interlude/protocol/fields';
import { MAX_REQUEST_BYTES } from '@interlude/protocol/limits';

/** Bytes of a rejected body to read, so the sender receives the error instead of a broken connection. */
const DRAIN_BYTES = 4 * MAX_REQUEST_BYTES;
/** Default wording of `too_large`. */
const REQUEST = { subject: 'A request', advice: 'Send fewer records at once.' };

/**
 * Reads and decompresses a request body. The limit applies while reading, to both the compressed and the decompressed
 * bytes, so neither an endless body nor a zip bomb uses more memory.
 *
 * @throws AppError `too_large`, `unsupported_encoding`, or `malformed` if gzip data is damaged or ends early
 */
export async function readBody(
  request: Request,
  maxBytes = MAX_REQUEST_BYTES,
  wording = REQUEST,
): Promise<Uint8Array<ArrayBuffer>> {
  const encoding = (request.headers.get('content-encoding') ?? '').trim().toLowerCase();
  if (encoding !== '' && encoding !== 'identity' && encoding !== 'gzip' && encoding !== 'x-gzip') {
    throw new AppError('unsupported_encoding', 'The body must be uncompressed, or sent with Content-Encoding: gzip.', {
      headers: { 'accept-encoding': 'gzip' },
    });
  }
  if (request.body === null) return new Uint8Array(0);
  const raw = await readUpTo(request.body, maxBytes, DRAIN_BYTES).catch((cause) => {
    throw new AppError('malformed', 'The body ended before it was complete. Send it again.', { cause });
  });
  if (raw === null) throw tooLarge(maxBytes, wording);
  if (encoding === '' || encoding === 'identity') return raw;
  const decompressed = await gunzip(raw, maxBytes);
  if (decompressed.kind === 'decompressed') return decompressed.bytes;
  if (decompressed.kind === 'too-large') throw tooLarge(maxBytes, wording);
  throw new AppError('malformed', 'The body is not valid gzip. Compress it again, or send it uncompressed.');
}

function tooLarge(maxBytes: number, { subject, advice }: typeof REQUEST): AppError {
  return new AppError('too_large', `${subject} may have at most ${maxBytes} bytes, uncompressed. ${advice}`, {
    details: { maxBytes },
  });
}

/**
 * @param drain maximum bytes of an oversized stream to read
 * @returns null if the stream holds more than `max` bytes; never buffers more than that
 */
async function readUpTo(
  stream: ReadableStream<Uint8Array>,
  max: number,
  drain = max,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (size <= drain) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size <= max) chunks.push(value);
    else chunks.length = 0;
  }
  if (size > max) {
    // Ignored: after a failed cancel, the rest just stays unread.
    reader.cancel().catch(() => {});
    return null;
  }
  const joined = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    joined.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return joined;
}

type Decompressed = { kind: 'decompressed'; bytes: Uint8Array<ArrayBuffer> } | { kind: 'too-large' | 'damaged' };

/** `taken`: number of compressed bytes consumed. */
type Inflate = (compressed: Uint8Array, maxBytes: number) => Promise<{ bytes: Uint8Array<ArrayBuffer>; taken: number }>;

/** Maximum compressed bytes to decompress on the event loop. A hostile body takes 80 ms per MiB. */
const MAX_BYTES_ON_LOOP = 64 * 1024;

/**
 * Decompresses gzip in one step if the runtime can, because a stream yields to the event loop every 16 KiB.
 *
 * Accepts several members, as in RFC 1952. Trailing zeros are padding; any other trailing data is damage.
 */
export async function gunzip(compressed: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<Decompressed> {
  const inflate = inflateInOneStep();
  if (inflate === null) return gunzipStream(compressed, maxBytes);
  try {
    const { bytes, taken } = await inflate(compressed, maxBytes);
    // zlib stops at the first zero after a member, even if data follows.
    return isAllZeros(compressed, taken) ? { kind: 'decompressed', bytes } : { kind: 'damaged' };
  } catch (error) {
    const isOverLimit = error instanceof RangeError || fieldsOf(error).code === 'ERR_BUFFER_TOO_LARGE';
    return { kind: isOverLimit ? 'too-large' : 'damaged' };
  }
}

function isAllZeros(bytes: Uint8Array, from: number): boolean {
  for (let index = from; index < bytes.length; index += 1) if (bytes[index] !== 0) return false;
  return true;
}

/** The fallback without Node. Node's own stream would ignore data after zeros. @internal */
export async function gunzipStream(compressed: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<Decompressed> {
  try {
    const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream('gzip'));
    const bytes = await readUpTo(stream, maxBytes);
    return bytes === null ? { kind: 'too-large' } : { kind: 'decompressed', bytes };
  } catch {
    return { kind: 'damaged' };
  }
}

/** Looked up at runtime instead of imported, so the module loads without Node. */
function inflateInOneStep(): Inflate | null {
  const zlib = globalThis.process?.getBuiltinModule?.('node:zlib');
  if (zlib === undefined) return null;
  return async (compressed, maxBytes) => {
    const options = {
      info: true,
      maxOutputLength: maxBytes,
      // Chunk size that fits the result into one chunk if possible, without allocating far more than the compressed
      // size suggests.
      chunkSize: Math.max(Math.min(compressed.byteLength * 8, maxBytes), 16 * 1024),
    };
    const decompressed =
      compressed.byteLength <= MAX_BYTES_ON_LOOP
        ? zlib.gunzipSync(compressed, options)
        : await new Promise<unknown>((resolve, reject) => {
            zlib.gunzip(compressed, options, (error, result) => (error ? reject(error) : resolve(result)));
          });
    // `info` changes the result's type; the declaration omits that.
    const { buffer, engine } = decompressed as { buffer: Buffer<ArrayBuffer>; engine: { bytesWritten: number } };
    return { bytes: buffer, taken: engine.bytesWritten };
  };
}
