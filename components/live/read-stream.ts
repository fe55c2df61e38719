import type { FrameData } from '@interlude/protocol/frames';
import type { Position } from '@interlude/protocol/position';
import { createParser } from 'eventsource-parser';
import { askServer } from './ask-server';
import { isRowFrameName, type RowFrame } from './row-frame';

/** A frame with the length of its data on the wire. */
export interface ReceivedFrame {
  frame: RowFrame;
  chars: number;
}

export interface StreamHandlers {
  /** Something came, if only a heartbeat. */
  heard(): void;
  hello(data: FrameData['hello']): void;
  /** The row frames of one chunk, in order. */
  rows(frames: ReceivedFrame[]): void;
  upToDate(position: Position): void;
}

/** How a stream ended. `bye`: the server said so beforehand. */
export type StreamEnd = 'bye' | 'cut' | 'unauthorized';

/**
 * Reads one `GET /stream` to its end.
 *
 * Ordering: handlers are called in wire order; the rows of a chunk are handed over before a later `up-to-date`.
 * Failure: never throws. Whatever goes wrong is `cut`; the caller resumes from the last position it was given. It is the
 * caller, too, who ends a stream that says nothing.
 */
export async function readStream(
  request: { topics: string[]; after: Position; signal: AbortSignal; fetch?: typeof fetch | undefined },
  handlers: StreamHandlers,
): Promise<StreamEnd> {
  try {
    const query = new URLSearchParams([...request.topics.map((topic) => ['topic', topic]), ['after', request.after]]);
    const init = { headers: { accept: 'text/event-stream' }, signal: request.signal };
    const response = await askServer(`/stream?${query}`, init, request.fetch);
    // 409: another person has signed in, and this page's stream does not come back.
    if (response.status === 401 || response.status === 409) return 'unauthorized';
    if (!response.ok || !response.body) return 'cut';
    handlers.heard();
    return await readBody(response.body, handlers);
  } catch {
    return 'cut';
  }
}

async function readBody(body: ReadableStream<Uint8Array>, handlers: StreamHandlers): Promise<StreamEnd> {
  let rows: ReceivedFrame[] = [];
  let end: StreamEnd | null = null;
  const flush = () => {
    if (rows.length === 0) return;
    const batch = rows;
    rows = [];
    handlers.rows(batch);
  };
  const parser = createParser({
    onEvent({ id, event, data }) {
      if (isRowFrameName(event) && id !== undefined) {
        rows.push({ frame: { event, id, data: JSON.parse(data) } as RowFrame, chars: data.length });
      } else if (event === 'hello') {
        handlers.hello(JSON.parse(data));
      } else if (event === 'up-to-date') {
        flush();
        handlers.upToDate((JSON.parse(data) as FrameData['up-to-date']).position);
      } else if (event === 'bye') {
        end = 'bye';
      }
    },
  });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    while (end === null) {
      const { done, value } = await reader.read();
      if (done) return 'cut';
      handlers.heard();
      parser.feed(decoder.decode(value, { stream: true }));
      flush();
    }
    return end;
  } finally {
    reader.cancel().catch(() => {});
  }
}
