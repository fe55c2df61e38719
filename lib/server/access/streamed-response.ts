import { brokenOff } from '@interlude/protocol/errors';
import type { RequestContext } from './request-context';

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

export type OpenStream = (sink: Sink) => Source;

/** How much a stream reads ahead of its reader. */
const READ_AHEAD_BYTES = 64 * 1024;

/**
 * An answer that keeps streaming. The front door opens it over the connection itself, so that a frame is one write per
 * reader; everybody else reads its body.
 *
 * Failure: nothing is opened before one of the two begins. To decline it, cancel its body.
 */
export class StreamedResponse extends Response {
  readonly open: OpenStream;
  #body: ReadableStream<Chunk> | null = null;

  constructor(open: OpenStream, headers: HeadersInit) {
    super(null, { headers });
    this.open = open;
  }

  override get body(): ReadableStream<Chunk> {
    this.#body ??= streamToBody(this.open);
    return this.#body;
  }
}

/** For callers that only know a Response with a body. */
export function asResponse(answer: Response): Response {
  return answer instanceof StreamedResponse ? new Response(answer.body, { headers: answer.headers }) : answer;
}

export function streamToBody(open: OpenStream): ReadableStream<Chunk> {
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
          hangUp: (why) => controller.error(brokenOff(why)),
        });
      },
      pull: () => source?.drained(),
      cancel: () => source?.gone(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: READ_AHEAD_BYTES }),
  );
}

/**
 * A long answer that breaks off once whoever reads it may not any more: how long they take over it is up to them.
 *
 * Failure: it ends as a broken connection does, so that nobody takes a part for the whole.
 */
export function abortableBody(
  body: ReadableStream<Uint8Array>,
  { whenOver }: Pick<RequestContext, 'whenOver'>,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let stop: (() => void) | null = null;
  const end = () => {
    stop?.();
    stop = () => {};
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // not before somebody reads it: what is never read is never ended either
        stop ??= whenOver(() => {
          controller.error(brokenOff('Whoever reads it may not any more.'));
          reader.cancel().catch(() => {});
        });
        try {
          const { done, value } = await reader.read();
          if (value !== undefined) return controller.enqueue(value);
          if (done) controller.close();
        } catch (error) {
          controller.error(error);
        }
        end();
      },
      cancel(reason) {
        end();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

/**
 * The streams that are open. A process that may freeze does not while there is one.
 */
export class OpenStreams {
  readonly #onFirst: () => void;
  readonly #onLast: () => void;
  #count = 0;

  constructor(onFirst: () => void, onLast: () => void) {
    this.#onFirst = onFirst;
    this.#onLast = onLast;
  }

  /** @returns how to say that it has ended; saying it twice does no harm */
  begin(): () => void {
    this.#count += 1;
    if (this.#count === 1) this.#onFirst();
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#count -= 1;
      if (this.#count === 0) this.#onLast();
    };
  }
}
