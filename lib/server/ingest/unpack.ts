import { fieldsOf } from '@interlude/protocol/fields';
import { readUpTo } from './read-up-to';

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
export async function unpack(packed: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<Unpacked> {
  const inflate = inflateInOneStep();
  if (inflate === null) return unpackStreamed(packed, maxBytes);
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
export async function unpackStreamed(packed: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<Unpacked> {
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
