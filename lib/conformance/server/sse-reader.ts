import { fieldsOf, parseJson } from '@interlude/protocol/fields';
import { createParser } from 'eventsource-parser';
import { type Patience, until } from '../check';

/** A frame as it came. */
export interface SeenFrame {
  event: string;
  id: string | null;
  data: Record<string, unknown>;
}

/** Reads a stream of server-sent events and keeps everything it said. */
export class SseReader {
  readonly frames: SeenFrame[] = [];
  heartbeats = 0;
  hasEnded = false;
  readonly #abort: AbortController;
  readonly #patience: Patience;

  private constructor(body: ReadableStream<Uint8Array>, abort: AbortController, patience: Patience) {
    this.#abort = abort;
    this.#patience = patience;
    void this.#read(body);
  }

  /** @throws Error with what was answered, if it can't be opened */
  static async open(url: string, headers: Record<string, string>, patience: Patience): Promise<SseReader> {
    const abort = new AbortController();
    patience.signal.addEventListener('abort', () => abort.abort());
    const response = await fetch(url, { headers, signal: abort.signal });
    if (!response.ok || response.body === null) {
      throw new Error(`${new URL(url).pathname} answered ${response.status}: ${await response.text()}`);
    }
    return new SseReader(response.body, abort, patience);
  }

  /** Those of a name. */
  named(event: string): SeenFrame[] {
    return this.frames.filter((frame) => frame.event === event);
  }

  /** The first frame that fits, as soon as it is there. */
  frame(expected: string, fits: (frame: SeenFrame) => boolean, todo: string, withinMs?: number): Promise<SeenFrame> {
    const patience = withinMs === undefined ? this.#patience : { ...this.#patience, withinMs };
    const seen = () => this.frames.map(({ event, id }) => `${event} ${id ?? ''}`.trim()).slice(-12);
    return until(patience, expected, () => this.frames.find(fits), todo, { seen });
  }

  close(): void {
    this.#abort.abort();
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const parser = createParser({
      onEvent: ({ event = 'message', id = null, data }) =>
        this.frames.push({ event, id: id ?? null, data: fieldsOf(parseJson(data)) }),
      onComment: () => {
        this.heartbeats += 1;
      },
    });
    const decoder = new TextDecoder();
    try {
      for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
        parser.feed(decoder.decode(chunk, { stream: true }));
      }
    } catch {
      // It broke, or was closed: what it had said counts.
    } finally {
      this.hasEnded = true;
    }
  }
}
