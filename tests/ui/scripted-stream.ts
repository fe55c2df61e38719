import type { Frame } from '@interlude/protocol/frames';
import { encodeFrame } from '@interlude/protocol/sse';

/** A client's `GET /stream`, to which the test responds. */
export class ScriptedStream {
  readonly topics: string[];
  readonly after: string | null;
  readonly response: Promise<Response>;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #respond!: (response: Response) => void;
  #reject!: (error: Error) => void;
  aborted = false;

  constructor(url: string, signal: AbortSignal | null) {
    const query = new URL(url, 'http://interlude.test').searchParams;
    this.topics = query.getAll('topic').sort();
    this.after = query.get('after');
    this.response = new Promise((resolve, reject) => {
      this.#respond = resolve;
      this.#reject = reject;
    });
    signal?.addEventListener('abort', () => {
      this.aborted = true;
      this.#reject(new DOMException('aborted', 'AbortError'));
      try {
        this.#controller?.error(new DOMException('aborted', 'AbortError'));
      } catch {
        // already closed
      }
    });
  }

  accept(resume: 'ok' | 'gap' = 'ok', position = '0'): this {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
    });
    this.#respond(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
    return this.send({ event: 'hello', data: { resume, position } });
  }

  refuse(status: number): void {
    this.#respond(new Response('{}', { status }));
  }

  /** Fails the request: the server is unreachable. */
  lose(): void {
    this.#reject(new TypeError('Failed to fetch'));
  }

  send(...frames: Frame[]): this {
    return this.raw(frames.map(encodeFrame).join(''));
  }

  raw(text: string): this {
    this.#controller.enqueue(new TextEncoder().encode(text));
    return this;
  }

  cut(): void {
    this.#controller.error(new TypeError('network error'));
  }
}

/** A `fetch` whose calls the test settles. */
export function scriptedFetch() {
  const streams: ScriptedStream[] = [];
  const fetch = ((url: string, init?: RequestInit) => {
    const stream = new ScriptedStream(url, init?.signal ?? null);
    streams.push(stream);
    return stream.response;
  }) as typeof globalThis.fetch;
  return { streams, fetch };
}

export function eventFrame(sessionId: string, position: number, event: object = {}): Frame {
  return {
    event: 'session-event',
    id: String(position),
    data: {
      sessionId,
      agentId: 'a',
      seq: position,
      occurredAt: position,
      receivedAt: position,
      event: { type: 'CUSTOM', name: 'x', value: position, ...event },
    },
  };
}
