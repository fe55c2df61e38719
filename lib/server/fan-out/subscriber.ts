import type { FrameData } from '@interlude/protocol/frames';
import { positionFromNumber } from '@interlude/protocol/position';
import { encodeFrame } from '@interlude/protocol/sse';
import type { Sink } from '@/lib/server/access/stream-answer';

export interface SubscriberLimits {
  /** How many bytes may wait for a reader that catches up: more is read from the database as it drains. */
  readAheadBytes: number;
  /** How many bytes may wait for a live reader before it is cut off. */
  maxBacklogBytes: number;
  /** How long a reader that was cut off may take to fetch the rest before its connection is broken. */
  lingerMs: number;
}

type Chunk = Uint8Array<ArrayBuffer>;

/**
 * The server's end of one stream.
 *
 * Ordering: what it is given leaves in that order. `reading`: it gets pages and ignores ticks, which later pages will
 * hold. `holding`: a page is being read that may be the last, so ticks wait. `live`: ticks pass.
 * Failure: never skips. A live reader that leaves more than `maxBacklogBytes` unread gets `bye` after that backlog, and
 * is ended. What it has received by then has no hole, so it resumes where it stands.
 */
export class Subscriber {
  readonly #limits: SubscriberLimits;
  readonly #onEnd: () => void;
  readonly #sink: Sink;
  #phase: 'reading' | 'holding' | 'live' | 'ended' = 'reading';
  #after = 0;
  #held: Tick[] = [];
  #onDrain: (() => void) | null = null;
  #linger: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param onEnd called once, whichever side ended it
   */
  constructor(sink: Sink, limits: SubscriberLimits, onEnd: () => void) {
    this.#sink = sink;
    this.#limits = limits;
    this.#onEnd = onEnd;
  }

  get isEnded(): boolean {
    return this.#phase === 'ended';
  }

  send(chunk: Chunk): void {
    if (this.#phase !== 'ended') this.#sink.write(chunk);
  }

  /** Resolves when there is room for another page, or the reader has gone. */
  async room(): Promise<void> {
    while (this.#phase !== 'ended' && !this.#hasRoom) {
      await new Promise<void>((resolve) => {
        this.#onDrain = resolve;
      });
    }
  }

  /** From now on ticks wait. Those of an earlier `hold` are dropped: the page read next holds their rows. */
  hold(): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'holding';
    this.#held = [];
  }

  /** No more pages soon, so no ticks meanwhile. */
  release(): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'reading';
    this.#held = [];
  }

  /** It has everything up to `after`: says so (of `told`, if that is all it may know of), passes on what was held beyond that, and lets ticks through. */
  join(after: number, told = after): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'live';
    this.#after = after;
    this.send(encodeText(encodeFrame({ event: 'up-to-date', data: { position: positionFromNumber(told) } })));
    const held = this.#held;
    this.#held = [];
    for (const tick of held) this.offer(tick);
  }

  offer(tick: Tick): void {
    if (this.#phase === 'holding') this.#held.push(tick);
    if (this.#phase !== 'live') return;
    const chunk = tick.chunkAfter(this.#after);
    if (chunk === null) return;
    const { waiting } = this.#sink;
    // With no backlog, a tick of any size is accepted: cutting the reader off would not make it smaller.
    if (waiting > 0 && waiting + chunk.byteLength > this.#limits.maxBacklogBytes) this.close('slow');
    else this.#sink.write(chunk);
  }

  /** A comment for idle proxies. Pointless behind a backlog, which keeps the connection busy by itself. */
  beat(heartbeat: Chunk): void {
    if (this.#phase !== 'ended' && this.#hasRoom) this.#sink.write(heartbeat);
  }

  /** Ends the stream from this side, after what is still on its way. */
  close(reason: FrameData['bye']['reason']): void {
    if (this.#phase === 'ended') return;
    this.#sink.write(encodeText(encodeFrame({ event: 'bye', data: { reason } })));
    this.#sink.end();
    // A stalled reader would hold its backlog for ever, here and in the socket.
    const hangUp = () => this.#sink.hangUp('the reader did not fetch its backlog');
    this.#linger = setTimeout(hangUp, this.#limits.lingerMs);
    unref(this.#linger);
    this.#ended();
  }

  /** Ends the stream as a broken connection does: no `bye`, and the client resumes. The caller has logged the cause. */
  fail(error: unknown): void {
    if (this.#phase === 'ended') return;
    this.#sink.hangUp(error);
    this.#ended();
  }

  /** The reader is gone. */
  abandon(): void {
    clearTimeout(this.#linger);
    if (this.#phase === 'ended') return;
    this.#ended();
    // if only the request was aborted, the stream still has to end
    this.#sink.end();
  }

  get #hasRoom(): boolean {
    return this.#sink.waiting < this.#limits.readAheadBytes;
  }

  #ended(): void {
    this.#phase = 'ended';
    this.#held = [];
    this.drained();
    this.#onEnd();
  }

  /** There is room again. */
  drained(): void {
    this.#onDrain?.();
    this.#onDrain = null;
  }
}

/** A stopping server need not wait for it. */
function unref(timer: unknown): void {
  if (typeof timer === 'object') (timer as { unref?: () => void }).unref?.();
}

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
      this.#chunk ??= concatFrames(this.frames);
      return this.#chunk;
    }
    // Only the first tick after a subscriber joined can overlap what it has read by itself.
    const rest = this.frames.filter((frame) => frame.position > after);
    return rest.length === 0 ? null : concatFrames(rest);
  }
}

export function encodeText(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

function concatFrames(frames: readonly TickFrame[]): Uint8Array<ArrayBuffer> {
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
