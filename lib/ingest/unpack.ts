/** What a packed body came to: its bytes, or why there are none. */
export type Unpacked = { kind: 'unpacked'; bytes: Uint8Array<ArrayBuffer> } | { kind: 'too-large' | 'damaged' };

/** What it unpacks to, and how much of it that was. */
type Inflate = (packed: Uint8Array, maxBytes: number) => Promise<{ bytes: Uint8Array<ArrayBuffer>; taken: number }>;

/** What is made to be slow takes 80 ms per packed MiB: more than this is unpacked on a thread. */
const MOST_ON_LOOP_BYTES = 64 * 1024;

/**
 * Unpacks gzip in one step where the runtime can: a stream would come back for each 16 KiB, and stand in line behind every
 * reader each time.
 *
 * Several members follow each other as RFC 1952 has it; zeros behind them are padding, anything else is damage.
 * @param maxBytes of what it unpacks to: no more is ever made of it
 */
export async function unpack(packed: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<Unpacked> {
  const inflate = inflateInOneStep();
  if (inflate === null) return unpackStreamed(packed, maxBytes);
  try {
    const { bytes, taken } = await inflate(packed, maxBytes);
    // zlib ends at the first zero behind a member, whatever comes after it
    return isAllZeros(packed, taken) ? { kind: 'unpacked', bytes } : { kind: 'damaged' };
  } catch (error) {
    const isOverLimit = error instanceof RangeError || codeOf(error) === 'ERR_BUFFER_TOO_LARGE';
    return { kind: isOverLimit ? 'too-large' : 'damaged' };
  }
}

function isAllZeros(bytes: Uint8Array, from: number): boolean {
  for (let at = from; at < bytes.length; at += 1) if (bytes[at] !== 0) return false;
  return true;
}

/** The same where there is no Node, whose own stream would say nothing of what stands behind zeros. @internal */
export async function unpackStreamed(packed: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<Unpacked> {
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      size += part.value.byteLength;
      if (size > maxBytes) {
        // its failure would say no more than that nobody reads on
        reader.cancel().catch(() => {});
        return { kind: 'too-large' };
      }
      chunks.push(part.value);
    }
  } catch {
    return { kind: 'damaged' };
  }
  return { kind: 'unpacked', bytes: new Uint8Array(await new Blob(chunks).arrayBuffer()) };
}

/** Asked for and not imported, so that this also runs where there is no Node. */
function inflateInOneStep(): Inflate | null {
  const zlib = globalThis.process?.getBuiltinModule?.('node:zlib');
  if (zlib === undefined) return null;
  return async (packed, maxBytes) => {
    const options = {
      info: true,
      maxOutputLength: maxBytes,
      // all of it in one chunk, if it can be, and never more memory at first than the packed body asks for
      chunkSize: Math.max(Math.min(packed.byteLength * 8, maxBytes), 16 * 1024),
    };
    const unpacked =
      packed.byteLength <= MOST_ON_LOOP_BYTES
        ? zlib.gunzipSync(packed, options)
        : await new Promise<unknown>((resolve, reject) => {
            zlib.gunzip(packed, options, (error, result) => (error ? reject(error) : resolve(result)));
          });
    // what `info` makes of the answer, which its type leaves out
    const { buffer, engine } = unpacked as { buffer: Buffer<ArrayBuffer>; engine: { bytesWritten: number } };
    return { bytes: buffer, taken: engine.bytesWritten };
  };
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
}
