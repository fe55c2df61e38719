import { toAbortError } from '@interlude/protocol/errors';

type Chunk = Uint8Array<ArrayBuffer>;

/** One reader's connection, as a stream sees it. */
export interface Sink {
  /** How many written bytes the reader has not fetched yet. */
  readonly waiting: number;
  write(chunk: Chunk): void;
  /** Ends the answer after what was written. Harmless if it has ended. */
  end(): void;
  /**
   * Breaks the connection unless everything has been sent: the rest is lost, and the reader sees that it was not the
   * end.
   */
  hangUp(why: unknown): void;
}

/** What a writer is told about its reader. */
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
 * An answer that keeps streaming. The front door opens it over the connection itself, so that a frame is one write per
 * reader; everybody else reads its body.
 *
 * Failure: nothing is opened before one of the two begins. To decline it, cancel its body.
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

/** For callers that only know a Response with a body. */
export function asResponse(answer: Response): Response {
  return answer instanceof StreamAnswer ? new Response(answer.body, { headers: answer.headers }) : answer;
}

export function readable(open: Opener): ReadableStream<Chunk> {
  // workerd asks for more while it is being opened: what is written then need not be waited for
  let source: Source | null = null;
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
          // whoever pipes it does not log what it ends with
          hangUp: (why) => controller.error(toAbortError(why)),
        });
      },
      pull: () => source?.drained(),
      cancel: () => source?.gone(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: READ_AHEAD_BYTES }),
  );
}
