import type { Frame, FrameName } from '@interlude/protocol/frames';
import { createParser } from 'eventsource-parser';

/** Reads a stream's frames one after the other, as a client would, and its comments beside them. */
export class FrameReader {
  readonly frames: Frame[] = [];
  readonly comments: string[] = [];
  /** How many chunks the frames came in. */
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

  /** Leaves every stream that is still open. */
  static async leaveAll(): Promise<void> {
    await Promise.all([...FrameReader.#open].map((reader) => reader.cancel().catch(() => {})));
  }

  /** Resolves with the frames so far, once `isEnough` holds for them. Rejects when the stream ends before. */
  async until(isEnough: (frames: Frame[]) => boolean): Promise<Frame[]> {
    while (!isEnough(this.frames)) {
      if (this.#isOver) {
        const names = this.frames.map((frame) => frame.event).join(', ');
        throw new Error(`the stream ended too early, after: ${names || 'nothing'}`, { cause: this.#failure });
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

  /** Resolves once the other side has ended the stream. Rejects when it broke off. */
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
        this.#tell();
      }
    } catch (error) {
      this.#failure = error;
    }
    this.#isOver = true;
    FrameReader.#open.delete(this);
    this.#tell();
  }

  #tell(): void {
    for (const tell of this.#waiters) tell();
    this.#waiters.clear();
  }
}

/** The ids of frames that stand for rows, in the order they came. */
export function idsOf(frames: readonly Frame[]): number[] {
  return frames.flatMap((frame) => (frame.id === undefined ? [] : [Number(frame.id)]));
}
