import type { CommandFrameData } from './commands';
import type { Frame } from './frames';
import { MAX_ID_LENGTH } from './limits';

/** A frame of a runner's command stream. */
export type CommandFrame = {
  [Name in keyof CommandFrameData]: { event: Name; id?: string; data: CommandFrameData[Name] };
}[keyof CommandFrameData];

/**
 * Encodes a frame as one block of server-sent events.
 *
 * Ordering: frames are sent in position order. Only row frames carry an `id`, so a client's Last-Event-ID never exceeds
 * what it has received.
 * Failure: a truncated block lacks its final empty line, so the client never dispatches it.
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function encodeFrame(frame: Frame | CommandFrame): string {
  // One data line suffices, because JSON.stringify escapes line breaks.
  const data = JSON.stringify(frame.data);
  return frame.id === undefined
    ? `event: ${frame.event}\ndata: ${data}\n\n`
    : `id: ${frame.id}\nevent: ${frame.event}\ndata: ${data}\n\n`;
}

/** Sent every HEARTBEAT_MS. A comment: it carries no id and dispatches nothing. */
export const HEARTBEAT = ': hb\n\n';

export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // `no-transform` keeps compressing proxies (and Next's own gzip) from buffering the stream.
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
} as const;

export type Topic = { kind: 'fleet' } | { kind: 'session'; sessionId: string } | { kind: 'logs'; agentId: string };

/** @returns null for an unknown topic */
export function parseTopic(text: string): Topic | null {
  if (text === 'fleet') return { kind: 'fleet' };
  const [, prefix, id] = /^(session|logs):(.+)$/s.exec(text) ?? [];
  if (id === undefined || id.length > MAX_ID_LENGTH) return null;
  return prefix === 'session' ? { kind: 'session', sessionId: id } : { kind: 'logs', agentId: id };
}

export function formatTopic(topic: Topic): string {
  switch (topic.kind) {
    case 'fleet':
      return 'fleet';
    case 'session':
      return `session:${topic.sessionId}`;
    case 'logs':
      return `logs:${topic.agentId}`;
  }
}

/**
 * The delay before the next attempt. It doubles with every failure, and half of it is random, so that clients don't
 * reconnect in the same instant.
 *
 * @param failures failed attempts since the last success, from 1
 * @param random from 0 to 1
 * @returns milliseconds between half of min(longestMs, firstMs · 2^(failures−1)) and all of it
 */
export function retryDelayMs(
  failures: number,
  { firstMs, longestMs }: { firstMs: number; longestMs: number },
  random: number,
): number {
  const ceilingMs = Math.min(longestMs, firstMs * 2 ** Math.max(0, failures - 1));
  return (ceilingMs * (1 + random)) / 2;
}
