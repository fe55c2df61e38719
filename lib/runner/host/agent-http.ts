import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { connectionMessage, retryMs } from './server-request';

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

interface PatientRequest {
  method?: 'GET' | 'POST';
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal: AbortSignal;
}

const KEEP_ALIVE_MS = 60_000;

/** What was certainly not received: no connection came about. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/**
 * An HTTP request that waits for as long as its signal lets it: an agent may think for an hour before it answers, and
 * `fetch` gives up after five minutes without a byte. Redirects are not followed: the headers are for this address.
 *
 * @returns once the answer has begun
 * @throws Error of the connection, with its `code`
 */
export function patientRequest(
  url: string,
  { method = 'GET', headers, body, signal }: PatientRequest,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const begin = url.startsWith('https:') ? requestHttps : requestHttp;
    // A connection of its own: one that was kept may be closed by the server just as it is used.
    const request = begin(url, { method, headers, signal, agent: false }, (answer) => resolve(responseOf(answer)));
    request.once('error', reject);
    // A machine that is gone closes nothing: without this, its answer would be waited for for ever.
    request.setSocketKeepAlive(true, KEEP_ALIVE_MS);
    request.end(body);
  });
}

/** How long what explains a refusal may take to come. */
const BEGINNING_MS = 5_000;

/** The beginning of an answer that explains itself: one that is endless, or never ends, keeps nobody waiting. */
export async function beginningOf(answer: Response, maxBytes: number): Promise<string> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return '';
  const decoder = new TextDecoder();
  const late = setTimeout(() => void reader.cancel().catch(() => undefined), BEGINNING_MS);
  let text = '';
  try {
    for (let bytes = 0; bytes < maxBytes; ) {
      const { value } = await reader.read();
      if (value === undefined) break;
      bytes += value.length;
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    // What has come has to do.
  } finally {
    clearTimeout(late);
    void reader.cancel().catch(() => undefined);
  }
  return text;
}

export function isUnsent(error: unknown): boolean {
  const { code, errors } = error as { code?: string; errors?: { code?: string }[] };
  return UNSENT.has(code ?? '') || errors?.every((one) => UNSENT.has(one.code ?? '')) === true;
}

function responseOf(answer: IncomingMessage): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) if (value !== undefined) headers.set(name, String(value));
  const status = answer.statusCode ?? 502;
  const hasNoBody = status === 204 || status === 205 || status === 304;
  if (hasNoBody) answer.resume();
  const body = hasNoBody ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
  return new Response(body, { status: Math.min(Math.max(status, 200), 599), headers });
}

/** A machine that is gone refuses nothing: no answer within this time counts as one. */
const WITHIN_MS = 3_000;
/** A tunnel or a container's port accepts for a server that is gone, and closes again: a server waits to be asked. */
const STAYS_MS = 300;
/** Answers of a gateway whose server is gone. */
const GATEWAY: ReadonlySet<number | null> = new Set([502, 503, 504]);

/**
 * Why an agent's server can't be reached: `no answer at http://127.0.0.1:8000/: ECONNREFUSED`; null if it can. A server
 * that is busy still accepts connections, so slowness is no death. Nothing is sent.
 *
 * @param lastStatus of the newest answer, where a gateway may stand before the server
 */
export async function noAnswerAt(url: string, lastStatus: number | null): Promise<string | null> {
  const why = GATEWAY.has(lastStatus) ? `its gateway says ${lastStatus}` : await refusalAt(new URL(url));
  return why === null ? null : `no answer at ${shownUrl(url)}: ${why}`;
}

/**
 * Asks at a second address, where a gateway has refused the first: it may refuse a single path (a stream that is open for
 * too long) while the agent answers at others.
 *
 * @param lastStatus of the newest answer at the first address
 * @param ask at the second, within so many milliseconds
 * @returns the status for `noAnswerAt`
 */
export async function statusBehindGateway(
  lastStatus: number | null,
  ask: (withinMs: number) => Promise<{ status: number }>,
): Promise<number | null> {
  if (!GATEWAY.has(lastStatus)) return lastStatus;
  try {
    return (await ask(WITHIN_MS)).status;
  } catch {
    return lastStatus;
  }
}

function refusalAt({ protocol, hostname, port }: URL): Promise<string | null> {
  const at = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
  return new Promise((resolve) => {
    const socket = connect({ ...at, signal: AbortSignal.timeout(WITHIN_MS) });
    const settle = (refusal: string | null) => {
      socket.destroy();
      resolve(refusal);
    };
    socket.once('connect', () => setTimeout(() => settle(null), STAYS_MS));
    socket.once('end', () => settle('it closes each connection'));
    socket.resume();
    socket.on('error', (error) =>
      settle(error.name === 'AbortError' ? `no connection within ${WITHIN_MS / 1_000} s` : connectionMessage(error)),
    );
  });
}

/** An address as people are shown it: a password, or a key in its query, is nobody's business. */
export function shownUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
