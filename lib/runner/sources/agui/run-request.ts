import { randomUUID } from 'node:crypto';
import { fieldsOf, parseJson, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { displayUrl, isUnsent, readBeginning, readEvents, untimedRequest } from '../../host/agent-http';
import { connectionMessage } from '../../host/server-request';

export interface RunRequestOptions {
  url: string;
  headers: Record<string, string>;
  /** Feeds traffic to the adapter. @returns once stored */
  pass(dir: 'in' | 'out', msg: object): Promise<void>;
  log(level: 'warn', message: string): void;
  /** True if the event stream, on which the run may arrive, is open. */
  isStreamOpen(): boolean;
  /** Called when the run starts on the event stream before the response to its POST. */
  onStarted(): void;
  /** Time for the run to start on the event stream. */
  beginMs?: number | undefined;
}

export type PostResult =
  | { kind: 'accepted' }
  /** @param reason a sentence without its period */
  | { kind: 'later' | 'refused' | 'unknown'; reason: string };

/** Statuses that mean: retry later. */
const LATER: ReadonlySet<number> = new Set([409, 423, 425, 429, 502, 503]);
const BEGIN_MS = 15_000;
export const QUOTED = 400;
/** Bytes read of an error response. */
const MAX_EXPLAINED = 16 * 1024;

/**
 * Posts one run and reads its response stream. A server may also send the run on its event stream and respond to the
 * POST late, with JSON, or through a proxy that times out: the events then prove that the server has the run.
 *
 * Failure: a run that was certainly not received may be posted again as another run. The end of the stream is reported
 * whether or not the run has ended.
 */
export class RunRequest {
  readonly id = randomUUID();
  /** True once the run has ended. The stream may stay open. */
  hasEnded = false;
  readonly #options: RunRequestOptions;
  readonly #cut = new AbortController();
  readonly #started = new AbortController();
  readonly #ended = new AbortController();
  #response: Response | null = null;

  constructor(options: RunRequestOptions) {
    this.#options = options;
  }

  /** Stops reading. */
  cut(reason: string): void {
    this.#cut.abort(reason);
  }

  /** Notes that the run's turn has started or ended, on either stream. */
  observed(phase: 'started' | 'ended'): void {
    const hasResponse = this.#response !== null;
    if (phase === 'started') this.#started.abort();
    else this.#ended.abort();
    if (hasResponse) return;
    if (phase === 'ended') this.hasEnded = true;
    else this.#options.onStarted();
  }

  get #hasStarted(): boolean {
    return this.#started.signal.aborted;
  }

  /** @param input `RunAgentInput` without the run id */
  async post(input: object): Promise<PostResult> {
    const { url, headers, pass } = this.#options;
    const body = { ...input, runId: this.id };
    void pass('out', { method: 'POST', path: new URL(url).pathname, body });
    let response: Response;
    try {
      const accept = { 'content-type': 'application/json', accept: 'text/event-stream', ...headers };
      const request = {
        method: 'POST' as const,
        headers: accept,
        body: JSON.stringify(body),
        signal: this.#cut.signal,
      };
      response = await untimedRequest(url, request);
    } catch (error) {
      if (this.#hasStarted) return { kind: 'accepted' };
      const reason = this.#reasonOf(error);
      await this.#refused(0, reason);
      if (isUnsent(error))
        return { kind: 'later', reason: `the agent can’t be reached at ${displayUrl(url)} (${reason})` };
      return { kind: 'unknown', reason: `the connection broke before the agent responded (${reason})` };
    }
    if (response.ok && isStream(response)) {
      this.#response = response;
      await pass('in', { stream: 'run', runId: this.id, status: response.status });
      return { kind: 'accepted' };
    }
    const reason = await refusalText(response, url);
    const mayStart = response.ok && this.#options.isStreamOpen();
    if (mayStart) await this.#waitForStart();
    if (this.#hasStarted) return { kind: 'accepted' };
    await this.#refused(response.ok ? 415 : response.status, reason);
    if (mayStart) return { kind: 'unknown', reason: `${reason}; no event of the run arrived on the event stream` };
    return { kind: LATER.has(response.status) ? 'later' : 'refused', reason };
  }

  async #waitForStart(): Promise<void> {
    const late = AbortSignal.timeout(this.#options.beginMs ?? BEGIN_MS);
    await aborted(AbortSignal.any([this.#started.signal, this.#cut.signal, late]));
  }

  /** Reads the stream to its end. @param onEnded called when the run ends */
  async follow(onEnded: () => void): Promise<void> {
    const { pass, log } = this.#options;
    if (this.#response === null) {
      await aborted(AbortSignal.any([this.#ended.signal, this.#cut.signal]));
      if (!this.hasEnded) {
        await pass('in', { stream: 'run', runId: this.id, ended: String(this.#cut.signal.reason), isAsked: true });
      }
      return;
    }
    let stored: Promise<void> = Promise.resolve();
    let reason: string | null = null;
    try {
      const isWhole = await readEvents(this.#response.body ?? new ReadableStream(), {
        acceptsUnterminated: true,
        onChunk: () => stored,
        onEvent: ({ data }) => {
          const event = parseJson(data);
          const quoted = truncateText(data, QUOTED);
          if (event === null) log('warn', `the agent sent invalid JSON: ${quoted}`);
          stored = pass('in', { stream: 'run', runId: this.id, ...(event === null ? { text: quoted } : { event }) });
          const type = textOf(fieldsOf(event).type);
          if (type === 'RUN_STARTED') this.hasEnded = false;
          if (type !== 'RUN_FINISHED' && type !== 'RUN_ERROR') return;
          this.hasEnded = true;
          onEnded();
        },
      });
      if (!isWhole) reason = 'an event is too long';
    } catch (error) {
      reason = this.#reasonOf(error);
    }
    const isAsked = this.#cut.signal.aborted;
    if (!this.hasEnded && !isAsked) {
      log('warn', `the stream of a run broke before its end: ${reason ?? 'it was closed'}`);
    }
    await pass('in', { stream: 'run', runId: this.id, ended: reason, ...(isAsked ? { isAsked } : {}) });
  }

  #refused(status: number, body: string): Promise<void> {
    return this.#options.pass('in', { stream: 'run', runId: this.id, status, body });
  }

  #reasonOf(error: unknown): string {
    return this.#cut.signal.aborted ? String(this.#cut.signal.reason) : connectionMessage(error);
  }
}

export function isStream({ headers, status }: Response): boolean {
  const type = headers.get('content-type');
  return type === null ? status === 200 : type.includes('text/event-stream');
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Reason of a refusal: `http://… answered 422: messages: field required`. */
export async function refusalText(response: Response, url: string): Promise<string> {
  const text = truncateText((await readBeginning(response, MAX_EXPLAINED)).trim(), MAX_EXPLAINED);
  if (response.ok)
    return `${displayUrl(url)} answered with ${response.headers.get('content-type')}, not with an event stream`;
  const { detail, message, error } = fieldsOf(parseJson(text));
  const detailText = textOf(detail) ?? textOf(message) ?? textOf(error) ?? textOf(fieldsOf(error).message) ?? text;
  return `${displayUrl(url)} answered ${response.status}${detailText === '' ? '' : `: ${truncateText(detailText, QUOTED)}`}`;
}
