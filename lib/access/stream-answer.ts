import { brokenOff } from '@/lib/protocol/errors';

type Chunk = Uint8Array<ArrayBuffer>;

/** One reader's connection, as far as a stream may touch it. */
export interface Sink {
  /** How many bytes were written that the reader has not fetched yet. */
  readonly waiting: number;
  write(chunk: Chunk): void;
  /** Ends the answer behind what was written. Harmless on one that has ended. */
  end(): void;
  /** Breaks off, unless all has left: what is still on its way is lost, and the reader sees that it was not the end. */
  hangUp(why: unknown): void;
}

/** What writes into a sink is told of the other side. */
export interface Source {
  /** There is room again. */
  drained(): void;
  /** The reader has gone. */
  gone(): void;
}

export type Opener = (sink: Sink) => Source;

/** How much a stream reads ahead of its reader. */
const READ_AHEAD_BYTES = 64 * 1024;

/**
 * An answer that goes on. The front door opens it over the connection itself, so that a frame takes one write to each
 * reader; anybody else reads its body.
 *
 * Failure: nothing is opened before one of the two begins. Whoever does not want it cancels its body.
 */
export class StreamAnswer extends Response {
  readonly open: Opener;
  #body: ReadableStream<Chunk> | null = null;

  constructor(open: Opener, headers: HeadersInit) {
    super(null, { headers });
    this.open = open;
  }

  override get body(): ReadableStream<Chunk> {
    this.#body ??= readable(this.open);
    return this.#body;
  }
}

/** For those who know no other answer than a Response with a body. */
export function asResponse(answer: Response): Response {
  return answer instanceof StreamAnswer ? new Response(answer.body, { headers: answer.headers }) : answer;
}

export function readable(open: Opener): ReadableStream<Chunk> {
  let source: Source;
  return new ReadableStream<Chunk>(
    {
      start(controller) {
        source = open({
          get waiting() {
            return READ_AHEAD_BYTES - (controller.desiredSize ?? 0);
          },
          write: (chunk) => controller.enqueue(chunk),
          end() {
            try {
              controller.close();
            } catch {
              // cancelled already
            }
          },
          // of what it ends with whoever pipes it logs nothing
          hangUp: (why) => controller.error(brokenOff(why)),
        });
      },
      pull: () => source.drained(),
      cancel: () => source.gone(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: READ_AHEAD_BYTES }),
  );
}
