const encoder = new TextEncoder();

export interface TickFrame {
  position: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** What one tick of the tailer has for all subscribers of the same topics: encoded once, joined once, shared. */
export class Tick {
  /** The tick covers (from, to]. */
  readonly from: number;
  readonly to: number;
  readonly frames: TickFrame[] = [];
  #chunk: Uint8Array<ArrayBuffer> | null = null;

  constructor(from: number, to: number) {
    this.from = from;
    this.to = to;
  }

  /** The tick's frames after `after` as one chunk; null if there are none. */
  chunkAfter(after: number): Uint8Array<ArrayBuffer> | null {
    if (after <= this.from) {
      this.#chunk ??= joined(this.frames);
      return this.#chunk;
    }
    // Only the first tick after a subscriber joined can overlap what it has read by itself.
    const rest = this.frames.filter((frame) => frame.position > after);
    return rest.length === 0 ? null : joined(rest);
  }
}

export function encodeText(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

function joined(frames: readonly TickFrame[]): Uint8Array<ArrayBuffer> {
  const [first] = frames;
  if (frames.length === 1 && first !== undefined) return first.bytes;
  const chunk = new Uint8Array(frames.reduce((length, frame) => length + frame.bytes.byteLength, 0));
  let at = 0;
  for (const { bytes } of frames) {
    chunk.set(bytes, at);
    at += bytes.byteLength;
  }
  return chunk;
}
