import { type RedactedFor, redactedJson } from '@interlude/protocol/redaction/redact-model';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { unref, Yielder } from '@/db/yield-to-loop';
import { postRedacted } from '@/lib/server/post-redacted';
import type { OtelSettings } from './otel-settings';
import { otlpRequest, type Span } from './span';

/** Retryable responses of a collector. */
const RETRYABLE = new Set([429, 502, 503, 504]);
const MAX_ATTEMPTS = 3;

/**
 * Sends spans to a collector in batches.
 *
 * Ordering: spans leave in order, one request at a time.
 * Failure: callers neither wait nor see failures. Spans are dropped after three attempts, or when the queue is full;
 * the log says so once, until sending succeeds again.
 */
export class SpanExporter {
  readonly #settings: OtelSettings;
  #queue: Span[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | null = null;
  readonly #abort = new AbortController();
  #isFailing = false;
  #dropped = 0;

  constructor(settings: OtelSettings) {
    this.#settings = settings;
  }

  add(...spans: readonly Span[]): void {
    if (this.#abort.signal.aborted) return;
    const room = this.#settings.mostWaiting - this.#queue.length;
    if (spans.length > room) this.#drop(spans.length - Math.max(room, 0), 'the queue is full');
    this.#queue.push(...spans.slice(0, Math.max(room, 0)));
    if (this.#queue.length >= this.#settings.mostAtOnce) void this.flush();
    else if (this.#timer === undefined && this.#queue.length > 0) {
      this.#timer = setTimeout(() => void this.flush(), this.#settings.delayMs);
      unref(this.#timer);
    }
  }

  /** Stops sending, including requests in progress. */
  close(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
    if (this.#queue.length > 0) this.#drop(this.#queue.splice(0).length, 'the server is shutting down');
  }

  /** Sends the queued spans. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) await this.#send(this.#queue.splice(0, this.#settings.mostAtOnce));
  }

  async #send(spans: Span[]): Promise<void> {
    const yielder = new Yielder();
    const request = otlpRequest(spans, this.#settings.resource);
    const body = await redactedJson('traces', request, yielder.maybeYield);
    for (let attempt = 1; ; attempt += 1) {
      const failure = await this.#post(body);
      if (failure === null) {
        if (this.#isFailing) serverLog('info', `Traces are exported again; ${this.#dropped} spans were dropped`);
        this.#isFailing = false;
        this.#dropped = 0;
        return;
      }
      if (!failure.isRetryable || attempt === MAX_ATTEMPTS || this.#abort.signal.aborted)
        return this.#drop(spans.length, failure.why);
      await new Promise((resolve) => setTimeout(resolve, failure.waitMs * attempt));
    }
  }

  /** @returns the failure; null for success */
  async #post(body: RedactedFor<'traces'>): Promise<{ why: string; isRetryable: boolean; waitMs: number } | null> {
    const { url, headers, timeoutMs } = this.#settings;
    try {
      const response = await postRedacted(url, body, {
        headers: { ...headers, 'content-type': 'application/json' },
        signal: AbortSignal.any([this.#abort.signal, AbortSignal.timeout(timeoutMs)]),
      });
      await response.body?.cancel();
      if (response.ok) return null;
      const seconds = Number(response.headers.get('retry-after') ?? '0');
      const waitMs = seconds > 0 && seconds <= 10 ? seconds * 1_000 : RETRY_MS;
      return { why: `it responded with ${response.status}`, isRetryable: RETRYABLE.has(response.status), waitMs };
    } catch (error) {
      const { message, cause } = error as Error;
      const why = cause instanceof Error ? cause.message : message;
      return { why, isRetryable: true, waitMs: RETRY_MS };
    }
  }

  #drop(count: number, why: string): void {
    this.#dropped += count;
    if (!this.#isFailing) {
      serverLog('warn', `Can’t export traces to ${new URL(this.#settings.url).host}: ${why}`);
    }
    this.#isFailing = true;
  }
}

const RETRY_MS = 250;
