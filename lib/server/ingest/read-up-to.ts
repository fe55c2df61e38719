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
