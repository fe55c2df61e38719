import { setTimeout as pause } from 'node:timers/promises';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { retryMs } from '../retry';
import { connectionMessage } from '../server-request';

/**
 * Reads a stream of server-sent events for as long as it is wanted: when it breaks, ends, stays silent for too long or
 * can't be opened, it is opened again, for ever, after a wait that doubles and is partly left to chance.
 *
 * Ordering: events are handed over in the order of the stream; `onOpen` has resolved before the first.
 * Failure: `onBroken` says each time what happened and when the next attempt is; it never counts attempts to an end.
 */
export interface EventStreamOptions {
  /** Opens the stream. @param lastEventId the id of the last event that was handed over */
  open(signal: AbortSignal, lastEventId: string | null): Promise<Response>;
  /** The stream is there: the moment to read what was missed. */
  onOpen(): void | Promise<void>;
  onEvent(event: EventSourceMessage): void;
  onBroken(broken: BrokenStream): void;
  /** A stream that is silent for longer has died. Without it, it may be silent for ever. */
  silentMs?: number;
  /** The longest wait between two attempts. */
  longestMs?: number;
  /**
   * The longest wait after an answer that there is no such stream (404, 405, 410, 501), as long as there never was one.
   */
  missingMs?: number;
  /** Uniform in [0, 1). */
  random?: () => number;
  signal: AbortSignal;
}

export interface BrokenStream {
  /** For people: `answered 404`, `ended`, `ECONNREFUSED`. */
  reason: string;
  /** Of an answer that was no stream. */
  status: number | null;
  /** In a row. */
  failures: number;
  /** How long it had been silent, if it was left for that; else 0. */
  silentMs: number;
  againInMs: number;
}

const MISSING: ReadonlySet<number> = new Set([404, 405, 410, 501]);
/** Longer events are not assembled: the stream counts as broken. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024;

/** Resolves once the signal has fired. */
export async function readEventStream(options: EventStreamOptions): Promise<void> {
  const { signal, random = Math.random, longestMs = 30_000 } = options;
  let failures = 0;
  let wasEverOpen = false;
  let lastEventId: string | null = null;
  while (!signal.aborted) {
    const { reason, status, silentMs, wasOpen } = await readOnce(options, lastEventId, (id) => {
      lastEventId = id;
    });
    if (signal.aborted) return;
    failures = wasOpen ? 1 : failures + 1;
    const cause = status === 401 || status === 403 ? 'unauthorized' : 'unavailable';
    wasEverOpen ||= wasOpen;
    const isMissing = !wasEverOpen && status !== null && MISSING.has(status);
    const ceilingMs = (isMissing ? options.missingMs : undefined) ?? longestMs;
    const againInMs = retryMs(cause, failures, random(), ceilingMs);
    options.onBroken({ reason, status, failures, silentMs, againInMs });
    await pause(againInMs, undefined, { signal }).catch(() => undefined);
  }
}

interface Ended {
  reason: string;
  status: number | null;
  silentMs: number;
  wasOpen: boolean;
}

async function readOnce(
  { open, onOpen, onEvent, silentMs, signal }: EventStreamOptions,
  lastEventId: string | null,
  seen: (id: string) => void,
): Promise<Ended> {
  const silence = new AbortController();
  const ended = AbortSignal.any([signal, silence.signal]);
  let timer: NodeJS.Timeout | undefined;
  const heard = () => {
    clearTimeout(timer);
    if (silentMs !== undefined) timer = setTimeout(() => silence.abort(), silentMs);
  };
  let wasOpen = false;
  try {
    heard();
    const response = await open(ended, lastEventId);
    if (!response.ok || response.body === null) {
      await response.body?.cancel().catch(() => undefined);
      return { reason: `answered ${response.status}`, status: response.status, silentMs: 0, wasOpen };
    }
    wasOpen = true;
    await onOpen();
    const isWhole = await readEvents(response.body, {
      onChunk: heard,
      onEvent(event) {
        if (event.id !== undefined) seen(event.id);
        onEvent(event);
      },
    });
    return { reason: isWhole ? 'ended' : 'sent an event that is too long', status: null, silentMs: 0, wasOpen };
  } catch (error) {
    const isSilent = silence.signal.aborted;
    const reason = isSilent ? 'was silent for too long' : connectionMessage(error);
    return { reason, status: null, silentMs: isSilent ? (silentMs ?? 0) : 0, wasOpen };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * One stream, to its end.
 *
 * @param listener.onChunk is waited for: a slow listener slows the sender
 * @param listener.takesLast also what stands at the end without the blank line that ends an event
 * @returns false if it was left because of an event that is too long
 */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  listener: { onEvent(event: EventSourceMessage): void; onChunk?(): void | Promise<void>; takesLast?: true },
): Promise<boolean> {
  let pending = 0;
  const parser = createParser({
    onEvent(event) {
      pending = 0;
      listener.onEvent(event);
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    pending += chunk.length;
    if (pending > MAX_EVENT_BYTES) return false;
    parser.feed(decoder.decode(chunk, { stream: true }));
    await listener.onChunk?.();
  }
  if (listener.takesLast) parser.feed('\n\n');
  return true;
}
