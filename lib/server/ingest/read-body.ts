import { AppError } from '@interlude/protocol/errors';
import { fieldsOf } from '@interlude/protocol/fields';
import { MAX_REQUEST_BYTES } from '@interlude/protocol/limits';

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
  const unpacked = await gunzip(raw, maxBytes);
  if (unpacked.kind === 'unpacked') return unpacked.bytes;
  if (unpacked.kind === 'too-large') throw tooLarge(maxBytes, said);
  throw new AppError('malformed', 'The body is not valid gzip. Pack it again or send it as it is.');
}

function tooLarge(maxBytes: number, { what, advice }: typeof REQUEST): AppError {
  return new AppError('too_large', `${what} may hold ${maxBytes} bytes, unpacked. ${advice}`, {
    details: { maxBytes },
  });
}

/**
 * All bytes of a stream.
 * @param drain how far it is read before it is given up, if not only to `most`
 * @returns null if there are more than `most`; no more memory than that is ever taken
 */
export async function readUpTo(
  stream: ReadableStream<Uint8Array>,
  most: number,
  drain = most,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (size <= drain) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size <= most) chunks.push(value);
    else chunks.length = 0;
  }
  if (size > most) {
    // a failure of this would only say that the rest is not read
    reader.cancel().catch(() => {});
    return null;
  }
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return whole;
}

/** What a packed body came to: its bytes, or why there are none. */
type Unpacked = { kind: 'unpacked'; bytes: Uint8Array<ArrayBuffer> } | { kind: 'too-large' | 'damaged' };

/** Returns what it unpacks to, and how many packed bytes that took. */
type Inflate = (packed: Uint8Array, maxBytes: number) => Promise<{ bytes: Uint8Array<ArrayBuffer>; taken: number }>;

/** A body that was made to be slow takes 80 ms per packed MiB: anything larger than this is unpacked on a thread. */
const MOST_ON_LOOP_BYTES = 64 * 1024;

/**
 * Unpacks gzip in one step if the runtime can: a stream would come back for each 16 KiB, and wait in line behind every
 * reader each time.
 *
 * There may be several members, as in RFC 1952; zeros after them are padding, anything else is damage.
 * @param maxBytes most bytes to unpack: no more are ever produced
 */
export async function gunzip(packed: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<Unpacked> {
  const inflate = inflateInOneStep();
  if (inflate === null) return gunzipStream(packed, maxBytes);
  try {
    const { bytes, taken } = await inflate(packed, maxBytes);
    // zlib ends at the first zero behind a member, whatever comes after it
    return isAllZeros(packed, taken) ? { kind: 'unpacked', bytes } : { kind: 'damaged' };
  } catch (error) {
    const isOverLimit = error instanceof RangeError || fieldsOf(error).code === 'ERR_BUFFER_TOO_LARGE';
    return { kind: isOverLimit ? 'too-large' : 'damaged' };
  }
}

function isAllZeros(bytes: Uint8Array, from: number): boolean {
  for (let at = from; at < bytes.length; at += 1) if (bytes[at] !== 0) return false;
  return true;
}

/** The same without Node, whose own stream would ignore anything that follows zeros. @internal */
export async function gunzipStream(packed: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<Unpacked> {
  try {
    const bytes = await readUpTo(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip')), maxBytes);
    return bytes === null ? { kind: 'too-large' } : { kind: 'unpacked', bytes };
  } catch {
    return { kind: 'damaged' };
  }
}

/** Looked up instead of imported, so that this also runs without Node. */
function inflateInOneStep(): Inflate | null {
  const zlib = globalThis.process?.getBuiltinModule?.('node:zlib');
  if (zlib === undefined) return null;
  return async (packed, maxBytes) => {
    const options = {
      info: true,
      maxOutputLength: maxBytes,
      // all of it in one chunk if possible, but never much more memory at first than the packed body suggests
      chunkSize: Math.max(Math.min(packed.byteLength * 8, maxBytes), 16 * 1024),
    };
    const unpacked =
      packed.byteLength <= MOST_ON_LOOP_BYTES
        ? zlib.gunzipSync(packed, options)
        : await new Promise<unknown>((resolve, reject) => {
            zlib.gunzip(packed, options, (error, result) => (error ? reject(error) : resolve(result)));
          });
    // `info` changes the type of the answer, which its declaration leaves out
    const { buffer, engine } = unpacked as { buffer: Buffer<ArrayBuffer>; engine: { bytesWritten: number } };
    return { bytes: buffer, taken: engine.bytesWritten };
  };
}
