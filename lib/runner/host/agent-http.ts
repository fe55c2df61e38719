import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { connectionMessage, retryMs } from './server-request';

export interface EventStreamOptions {
  /** @param lastEventId the id of the last event */
  open(signal: AbortSignal, lastEventId: string | null): Promise<Response>;
  /** Called when the stream is open, to read missed events. */
  onOpen(): void | Promise<void>;
  onEvent(event: EventSourceMessage): void;
  onBroken(broken: BrokenStream): void;
  /** A stream that is silent for longer counts as dead. Default: no limit. */
  silentMs?: number;
  /** The longest wait between attempts. */
  longestMs?: number;
  /** The longest wait after 404, 405, 410 or 501, if the stream was never open. */
  missingMs?: number;
  /** Uniform in [0, 1). */
  random?: () => number;
  signal: AbortSignal;
}

export interface BrokenStream {
  /** For example `answered 404`, `ended`, `ECONNREFUSED`. */
  reason: string;
  /** The status of an answer that was not a stream. */
  status: number | null;
  /** Consecutive failures. */
  failures: number;
  /** The silence that ended the stream; else 0. */
  silentMs: number;
  againInMs: number;
}

const MISSING: ReadonlySet<number> = new Set([404, 405, 410, 501]);
/** A longer event breaks the stream. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024;

/**
 * Reads a stream of server-sent events until the signal aborts. A stream that breaks, ends, stays silent or can't be opened
 * is opened again, with exponential backoff and without limit.
 *
 * Ordering: events arrive in the order of the stream, after `onOpen` has resolved.
 * Failure: `onBroken` reports each failure and the wait before the next attempt.
 */
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
  onId: (id: string) => void,
): Promise<Ended> {
  const silence = new AbortController();
  const ended = AbortSignal.any([signal, silence.signal]);
  let timer: NodeJS.Timeout | undefined;
  const restartTimer = () => {
    clearTimeout(timer);
    if (silentMs !== undefined) timer = setTimeout(() => silence.abort(), silentMs);
  };
  let wasOpen = false;
  try {
    restartTimer();
    const response = await open(ended, lastEventId);
    if (!response.ok || response.body === null) {
      await response.body?.cancel().catch(() => undefined);
      return { reason: `answered ${response.status}`, status: response.status, silentMs: 0, wasOpen };
    }
    wasOpen = true;
    await onOpen();
    const isComplete = await readEvents(response.body, {
      onChunk: restartTimer,
      onEvent(event) {
        if (event.id !== undefined) onId(event.id);
        onEvent(event);
      },
    });
    return { reason: isComplete ? 'ended' : 'sent an overlong event', status: null, silentMs: 0, wasOpen };
  } catch (error) {
    const isSilent = silence.signal.aborted;
    const reason = isSilent ? 'was silent for too long' : connectionMessage(error);
    return { reason, status: null, silentMs: isSilent ? (silentMs ?? 0) : 0, wasOpen };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Reads one stream to its end.
 *
 * @param listener.onChunk awaited, so that a slow listener slows the sender
 * @param listener.takesLast accepts a last event without the blank line after it
 * @returns false after an overlong event
 */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  listener: { onEvent(event: EventSourceMessage): void; onChunk?(): void | Promise<void>; acceptsUnterminated?: true },
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
  if (listener.acceptsUnterminated) parser.feed('\n\n');
  return true;
}

interface UntimedRequest {
  method?: 'GET' | 'POST';
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal: AbortSignal;
}

const KEEP_ALIVE_MS = 60_000;

/** Errors before a connection exists, so the request was certainly not received. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/**
 * An HTTP request without a timeout: an agent may think for an hour before it answers, and `fetch` gives up after five
 * minutes. Does not follow redirects, because the headers are meant for this address only.
 *
 * @returns the response, once its headers have arrived
 * @throws Error of the connection, with its `code`
 */
export function untimedRequest(
  url: string,
  { method = 'GET', headers, body, signal }: UntimedRequest,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? requestHttps : requestHttp;
    // A new connection: the server may close an idle one just as it is reused.
    const request = send(url, { method, headers, signal, agent: false }, (response) => resolve(responseOf(response)));
    request.once('error', reject);
    // Without keep-alive, a request to a vanished machine would never settle.
    request.setSocketKeepAlive(true, KEEP_ALIVE_MS);
    request.end(body);
  });
}

const READ_TIMEOUT_MS = 5_000;

/** Reads the first bytes of a response, which may be endless, within five seconds. */
export async function readBeginning(response: Response, maxBytes: number): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return '';
  const decoder = new TextDecoder();
  const late = setTimeout(() => void reader.cancel().catch(() => undefined), READ_TIMEOUT_MS);
  let text = '';
  try {
    for (let bytes = 0; bytes < maxBytes; ) {
      const { value } = await reader.read();
      if (value === undefined) break;
      bytes += value.length;
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    // Returns the text received so far.
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

function responseOf(response: IncomingMessage): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined) headers.set(name, String(value));
  const status = response.statusCode ?? 502;
  const hasNoBody = status === 204 || status === 205 || status === 304;
  if (hasNoBody) response.resume();
  const body = hasNoBody ? null : (Readable.toWeb(response) as ReadableStream<Uint8Array>);
  return new Response(body, { status: Math.min(Math.max(status, 200), 599), headers });
}

/** An absent machine never answers. */
const CONNECT_TIMEOUT_MS = 3_000;
/**
 * A tunnel or container port accepts a connection for an absent server and closes it again. A real server waits for a
 * request.
 */
const OPEN_MS = 300;
/** Statuses of a gateway whose server is absent. */
const GATEWAY_STATUSES: ReadonlySet<number | null> = new Set([502, 503, 504]);

/**
 * Checks whether an agent's server accepts connections, without sending a request, so that a busy server counts as present.
 *
 * @param lastStatus the status of the latest answer, perhaps from a gateway
 * @returns for example `no answer at http://127.0.0.1:8000/: ECONNREFUSED`; null if it is reachable
 */
export async function unreachableReason(url: string, lastStatus: number | null): Promise<string | null> {
  const why = GATEWAY_STATUSES.has(lastStatus) ? `its gateway answers ${lastStatus}` : await refusalAt(new URL(url));
  return why === null ? null : `no answer at ${displayUrl(url)}: ${why}`;
}

/**
 * Requests a second address if a gateway refused the first: it may refuse a single path, such as a long-lived stream, while
 * the agent answers others.
 *
 * @param lastStatus the status of the latest answer at the first address
 * @param request sends a request to the second address, within the given milliseconds
 * @returns the status for `unreachableReason`
 */
export async function statusBehindGateway(
  lastStatus: number | null,
  request: (withinMs: number) => Promise<{ status: number }>,
): Promise<number | null> {
  if (!GATEWAY_STATUSES.has(lastStatus)) return lastStatus;
  try {
    return (await request(CONNECT_TIMEOUT_MS)).status;
  } catch {
    return lastStatus;
  }
}

function refusalAt({ protocol, hostname, port }: URL): Promise<string | null> {
  const at = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
  return new Promise((resolve) => {
    const socket = connect({ ...at, signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS) });
    const settle = (refusal: string | null) => {
      socket.destroy();
      resolve(refusal);
    };
    socket.once('connect', () => setTimeout(() => settle(null), OPEN_MS));
    socket.once('end', () => settle('it closes each connection'));
    socket.resume();
    socket.on('error', (error) =>
      settle(
        error.name === 'AbortError' ? `no connection within ${CONNECT_TIMEOUT_MS / 1_000} s` : connectionMessage(error),
      ),
    );
  });
}

/** The address without user, password and query, which may hold secrets. */
export function displayUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
