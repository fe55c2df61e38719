import type { FrameData } from '@interlude/protocol/frames';
import { positionFromNumber } from '@interlude/protocol/position';
import { encodeFrame } from '@interlude/protocol/sse';
import { unref } from '@/db/yield-to-loop';
import type { Sink } from '@/lib/server/access/streamed-response';

export interface SubscriberLimits {
  /** Maximum unsent bytes while a reader catches up. Further pages are read as the backlog drains. */
  readAheadBytes: number;
  /** Maximum unsent bytes of a live reader before its stream ends. */
  maxBacklogBytes: number;
  /** Milliseconds for the reader of an ended stream to fetch the rest. */
  lingerMs: number;
}

type Chunk = Uint8Array<ArrayBuffer>;

/**
 * The server's end of one stream.
 *
 * Ordering: chunks leave in the order they arrive. `reading`: pages arrive, and ticks are ignored, since later pages
 * contain their rows. `holding`: the page being read may be the last, so ticks wait. `live`: ticks are sent.
 * Failure: never skips a row. A live reader that leaves more than `maxBacklogBytes` unread gets `bye` after its
 * backlog. By then it has received every row up to its last one, from which it resumes.
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

  /** @param onEnd called once, whichever side ends the stream */
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

  /** Resolves when there is room for another page, or the stream has ended. */
  async room(): Promise<void> {
    while (this.#phase !== 'ended' && !this.#hasRoom) {
      await new Promise<void>((resolve) => {
        this.#onDrain = resolve;
      });
    }
  }

  /** Holds ticks from now on. Drops earlier ones: the next page contains their rows. */
  hold(): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'holding';
    this.#held = [];
  }

  /** Ignores ticks until the next page. */
  release(): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'reading';
    this.#held = [];
  }

  /**
   * Goes live after position `after`. `shown` is the position to report instead, if the reader must not know `after`.
   */
  join(after: number, shown = after): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'live';
    this.#after = after;
    this.send(encodeText(encodeFrame({ event: 'up-to-date', data: { position: positionFromNumber(shown) } })));
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
    // Without a backlog, accepts a tick of any size: ending the stream would not make the tick smaller.
    if (waiting > 0 && waiting + chunk.byteLength > this.#limits.maxBacklogBytes) this.close('slow');
    else this.#sink.write(chunk);
  }

  /** Sends a comment so that proxies don't close an idle connection. With a backlog, the connection is busy anyway. */
  sendHeartbeat(heartbeat: Chunk): void {
    if (this.#phase !== 'ended' && this.#hasRoom) this.#sink.write(heartbeat);
  }

  /** Ends the stream after the chunks already sent. */
  close(reason: FrameData['bye']['reason']): void {
    if (this.#phase === 'ended') return;
    this.#sink.write(encodeText(encodeFrame({ event: 'bye', data: { reason } })));
    this.#sink.end();
    // A stalled reader would hold its backlog forever, in this process and in the socket.
    const hangUp = () => this.#sink.hangUp('the reader did not fetch its backlog');
    this.#linger = setTimeout(hangUp, this.#limits.lingerMs);
    unref(this.#linger);
    this.#ended();
  }

  /** Breaks the connection without `bye`, so the client resumes. The caller has logged the cause. */
  fail(error: unknown): void {
    if (this.#phase === 'ended') return;
    this.#sink.hangUp(error);
    this.#ended();
  }

  abandon(): void {
    clearTimeout(this.#linger);
    if (this.#phase === 'ended') return;
    this.#ended();
    // If only the request was aborted, the response still has to end.
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

  /** Call when the sink has room again. */
  drained(): void {
    this.#onDrain?.();
    this.#onDrain = null;
  }
}

const encoder = new TextEncoder();

export interface TickFrame {
  position: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** The frames of one tick for an audience: encoded once, joined once, shared. */
export class Tick {
  /** The chunk covers the range (from, to]. */
  readonly from: number;
  readonly to: number;
  readonly frames: TickFrame[] = [];
  #chunk: Uint8Array<ArrayBuffer> | null = null;

  constructor(from: number, to: number) {
    this.from = from;
    this.to = to;
  }

  /** Joins the frames after `after` into a chunk; null if there are none. */
  chunkAfter(after: number): Uint8Array<ArrayBuffer> | null {
    if (after <= this.from) {
      this.#chunk ??= concatFrames(this.frames);
      return this.#chunk;
    }
    // Only the first tick after joining can overlap the last page.
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
  let index = 0;
  for (const { bytes } of frames) {
    chunk.set(bytes, index);
    index += bytes.byteLength;
  }
  return chunk;
}
