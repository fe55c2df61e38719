import type { Frame, FrameName } from '@interlude/protocol/frames';
import { EVERYTHING } from '@interlude/protocol/scope';
import { parseTopic, type Topic } from '@interlude/protocol/sse';
import { createParser } from 'eventsource-parser';
import { streamToBody } from '@/lib/server/access/streamed-response';
import type { FanOut, Subscription } from '@/lib/server/fan-out/fan-out';

/** Reads a stream's frames in order, as a client does, and its comments separately. */
export class FrameReader {
  readonly frames: Frame[] = [];
  readonly comments: string[] = [];
  /** Number of chunks received. */
  chunkCount = 0;
  #isOver = false;
  #failure: unknown = null;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #waiters = new Set<() => void>();
  static readonly #open = new Set<FrameReader>();

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
    FrameReader.#open.add(this);
    void this.#read();
  }

  /** Cancels every open stream. */
  static async leaveAll(): Promise<void> {
    await Promise.all([...FrameReader.#open].map((reader) => reader.cancel().catch(() => {})));
  }

  /** Resolves with the frames so far once `isEnough` holds. Rejects if the stream ends first. */
  async until(isEnough: (frames: Frame[]) => boolean): Promise<Frame[]> {
    while (!isEnough(this.frames)) {
      if (this.#isOver) {
        const names = this.frames.map((frame) => frame.event).join(', ');
        throw new Error(`the stream ended early, after: ${names || 'nothing'}`, { cause: this.#failure });
      }
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
    return this.frames;
  }

  /** Resolves with the nth frame of a name. */
  async frame<Name extends FrameName>(name: Name, nth = 1): Promise<Extract<Frame, { event: Name }>> {
    const frames = await this.until((all) => all.filter((frame) => frame.event === name).length >= nth);
    return frames.filter((frame) => frame.event === name)[nth - 1] as Extract<Frame, { event: Name }>;
  }

  async comment(): Promise<string> {
    await this.until(() => this.comments.length > 0);
    return this.comments[0] as string;
  }

  /** Resolves once the server ends the stream. Rejects if the connection breaks. */
  async end(): Promise<Frame[]> {
    while (!this.#isOver) await new Promise<void>((resolve) => this.#waiters.add(resolve));
    if (this.#failure !== null) throw this.#failure;
    return this.frames;
  }

  cancel(): Promise<void> {
    return this.#reader.cancel();
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    const parser = createParser({
      onEvent: ({ id, event, data }) => this.frames.push({ id, event, data: JSON.parse(data) } as Frame),
      onComment: (comment) => this.comments.push(comment),
    });
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done) break;
        this.chunkCount += 1;
        parser.feed(decoder.decode(value, { stream: true }));
        this.#notify();
      }
    } catch (error) {
      this.#failure = error;
    }
    this.#isOver = true;
    FrameReader.#open.delete(this);
    this.#notify();
  }

  #notify(): void {
    for (const tell of this.#waiters) tell();
    this.#waiters.clear();
  }
}

/** Ids of row frames, in order of arrival. */
export function idsOf(frames: readonly Frame[]): number[] {
  return frames.flatMap((frame) => (frame.id === undefined ? [] : [Number(frame.id)]));
}

type Wish = Partial<Omit<Subscription, 'topics'>>;

/** Opens an unread stream of these topics, with full scope, from the start. */
export async function streamOf(fanOut: FanOut, names: readonly string[], wish: Wish = {}) {
  const topics = names.map((name) => parseTopic(name) as Topic);
  const { signal } = new AbortController();
  return streamToBody(await fanOut.subscribe({ topics, scope: EVERYTHING, after: 0, signal, ...wish }));
}

/** The same, with a reader attached. */
export async function listenTo(fanOut: FanOut, names: readonly string[], wish: Wish = {}): Promise<FrameReader> {
  return new FrameReader(await streamOf(fanOut, names, wish));
}
