import type { FrameData } from '@interlude/protocol/frames';
import type { Position } from '@interlude/protocol/position';
import { createParser } from 'eventsource-parser';
import { apiFetch } from './api-fetch';
import { isRowFrameName, type RowFrame } from './row-frame';

/** A frame and the length of its data. */
export interface ReceivedFrame {
  frame: RowFrame;
  chars: number;
}

interface StreamHandlers {
  /** Called for every chunk, including heartbeats. */
  active(): void;
  hello(data: FrameData['hello']): void;
  /** The row frames of one chunk, in order. */
  rows(frames: ReceivedFrame[]): void;
  upToDate(position: Position): void;
}

/** `bye`: announced by the server. */
export type StreamEnd = 'bye' | 'cut' | 'unauthorized';

/**
 * Reads one `GET /stream` to its end.
 *
 * Ordering: handlers are called in wire order; the rows of a chunk are delivered before a later `up-to-date`.
 * Failure: never throws. Any failure is a `cut`, and the caller resumes from the last position. The caller also aborts
 * a silent stream.
 */
export async function readStream(
  request: { topics: string[]; after: Position; signal: AbortSignal; fetch?: typeof fetch | undefined },
  handlers: StreamHandlers,
): Promise<StreamEnd> {
  try {
    const query = new URLSearchParams([...request.topics.map((topic) => ['topic', topic]), ['after', request.after]]);
    const init = { headers: { accept: 'text/event-stream' }, signal: request.signal };
    const response = await apiFetch(`/stream?${query}`, init, request.fetch);
    // 409: someone else has signed in, so the stream can't resume.
    if (response.status === 401 || response.status === 409) return 'unauthorized';
    if (!response.ok || !response.body) return 'cut';
    handlers.active();
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
      handlers.active();
      parser.feed(decoder.decode(value, { stream: true }));
      flush();
    }
    return end;
  } finally {
    reader.cancel().catch(() => {});
  }
}
