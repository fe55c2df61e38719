import { toAbortError } from '@interlude/protocol/errors';

type Chunk = Uint8Array<ArrayBuffer>;

/** Calls back once if the reader loses access. @returns a function that stops watching */
export type WatchAccess = (onEnd: () => void) => () => void;

/** The connection of one reader. */
export interface Sink {
  /** Bytes that were written but not yet read. */
  readonly waiting: number;
  write(chunk: Chunk): void;
  /** Ends the response after the bytes already written. Safe to repeat. */
  end(): void;
  /** Breaks the connection unless all bytes were sent, so the reader notices the truncation. */
  hangUp(why: unknown): void;
}

export interface Source {
  /** Called when the sink accepts more. */
  drained(): void;
  /** Called when the reader has disconnected. */
  disconnected(): void;
}

export type OpenStream = (sink: Sink) => Source;

const READ_AHEAD_BYTES = 64 * 1024;

/**
 * A response that keeps streaming. The front door opens it directly on the connection, so a frame is one write per
 * reader; other callers read its body.
 *
 * Failure: the stream opens only when the front door or a reader starts it. Cancel the body to decline it.
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

/** For callers that need a plain Response with a body. */
export function asResponse(response: Response): Response {
  return response instanceof StreamedResponse ? new Response(response.body, { headers: response.headers }) : response;
}

export function streamToBody(open: OpenStream): ReadableStream<Chunk> {
  // workerd pulls while opening; the writes from opening need not wait
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
              // already cancelled
            }
          },
          // the caller swallows the final error
          hangUp: (why) => controller.error(toAbortError(why)),
        });
      },
      pull: () => source?.drained(),
      cancel: () => source?.disconnected(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: READ_AHEAD_BYTES }),
  );
}

/**
 * A long body that aborts once its reader loses access.
 *
 * Failure: ends like a broken connection, so the reader can't take a partial body for a complete one.
 */
export function abortableBody(body: ReadableStream<Uint8Array>, whenOver: WatchAccess): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let stop: (() => void) | null = null;
  const end = () => {
    stop?.();
    stop = () => {};
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // watches from the first read on, because an unread body would never stop watching
        stop ??= whenOver(() => {
          controller.error(toAbortError('The reader lost access.'));
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

/** Counts open streams. A process that may freeze stays awake while a stream is open. */
export class OpenStreams {
  readonly #onFirst: () => void;
  readonly #onLast: () => void;
  #count = 0;

  constructor(onFirst: () => void, onLast: () => void) {
    this.#onFirst = onFirst;
    this.#onLast = onLast;
  }

  /** @returns a function that marks the stream as ended; safe to repeat */
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
