import { type RedactedFor, redactedJson } from '@interlude/protocol/redaction/outlets';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { Yielder } from '@/db/yield-to-loop';
import { postRedacted } from '@/lib/server/access/post-redacted';
import type { OtelSettings } from './otel-settings';
import { otlpRequest, type Span } from './span';

/** What a collector answers that will have it again. */
const AGAIN = new Set([429, 502, 503, 504]);
const MOST_TRIES = 3;

/**
 * Sends spans to a collector, some at a time.
 *
 * Ordering: spans leave in the order in which they were told, one request at a time.
 * Failure: whoever tells a span neither waits nor hears of failures. What a collector does not take in three tries is
 * dropped, and so is what comes while too much waits: both are said in the server's log, once until it succeeds.
 */
export class SpanExporter {
  readonly #settings: OtelSettings;
  #waiting: Span[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | null = null;
  readonly #over = new AbortController();
  #isFailing = false;
  #dropped = 0;

  constructor(settings: OtelSettings) {
    this.#settings = settings;
  }

  add(...spans: readonly Span[]): void {
    if (this.#over.signal.aborted) return;
    const room = this.#settings.mostWaiting - this.#waiting.length;
    if (spans.length > room) this.#drop(spans.length - Math.max(room, 0), 'too many spans wait');
    this.#waiting.push(...spans.slice(0, Math.max(room, 0)));
    if (this.#waiting.length >= this.#settings.mostAtOnce) void this.flush();
    else if (this.#timer === undefined && this.#waiting.length > 0) {
      this.#timer = setTimeout(() => void this.flush(), this.#settings.delayMs);
      (this.#timer as { unref?: () => void }).unref?.();
    }
  }

  /** Sends nothing more, also of what is under way. */
  close(): void {
    clearTimeout(this.#timer);
    this.#over.abort();
    if (this.#waiting.length > 0) this.#drop(this.#waiting.splice(0).length, 'there was no time');
  }

  /** Sends what waits. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) await this.#send(this.#waiting.splice(0, this.#settings.mostAtOnce));
  }

  async #send(spans: Span[]): Promise<void> {
    const pace = new Yielder();
    const request = otlpRequest(spans, this.#settings.resource);
    const body = await redactedJson('traces', request, pace.restIfDue);
    for (let tries = 1; ; tries += 1) {
      const trouble = await this.#post(body);
      if (trouble === null) {
        if (this.#isFailing) serverLog('info', `traces are taken again; ${this.#dropped} spans were lost`);
        this.#isFailing = false;
        this.#dropped = 0;
        return;
      }
      if (!trouble.isAgain || tries === MOST_TRIES || this.#over.signal.aborted)
        return this.#drop(spans.length, trouble.why);
      await new Promise((resolve) => setTimeout(resolve, trouble.waitMs * tries));
    }
  }

  /** @returns what is wrong; null if nothing is */
  async #post(body: RedactedFor<'traces'>): Promise<{ why: string; isAgain: boolean; waitMs: number } | null> {
    const { url, headers, timeoutMs } = this.#settings;
    try {
      const response = await postRedacted(url, body, {
        headers: { ...headers, 'content-type': 'application/json' },
        signal: AbortSignal.any([this.#over.signal, AbortSignal.timeout(timeoutMs)]),
      });
      await response.body?.cancel();
      if (response.ok) return null;
      const seconds = Number(response.headers.get('retry-after') ?? '0');
      const waitMs = seconds > 0 && seconds <= 10 ? seconds * 1_000 : FIRST_WAIT_MS;
      return { why: `it answers ${response.status}`, isAgain: AGAIN.has(response.status), waitMs };
    } catch (error) {
      const { message, cause } = error as Error;
      const why = cause instanceof Error ? cause.message : message;
      return { why, isAgain: true, waitMs: FIRST_WAIT_MS };
    }
  }

  #drop(count: number, why: string): void {
    this.#dropped += count;
    if (!this.#isFailing) {
      serverLog('warn', `traces don’t get to the collector ${new URL(this.#settings.url).host}: ${why}`);
    }
    this.#isFailing = true;
  }
}

const FIRST_WAIT_MS = 250;
