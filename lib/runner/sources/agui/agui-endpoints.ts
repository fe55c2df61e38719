import { parseJson } from '@interlude/protocol/fields';
import { type BrokenStream, displayUrl, readEventStream, untimedRequest } from '../../host/agent-http';
import { connectionMessage } from '../../host/server-request';
import { isStream, refusalText } from './run-request';

/**
 * URLs of an AG-UI server, derived from the one for posting runs. AG-UI defines only that one; the others follow the
 * runner of the Ambient platform and CopilotKit's runtime.
 *
 * | runs | others |
 * |---|---|
 * | `http://host/` | `http://host/events/…` |
 * | `http://host/agui` | `http://host/agui/events/…` |
 * | `http://host/api/agent/default/run` (CopilotKit) | `http://host/api/agent/default/events/…` |
 *
 * All keep the query string.
 */
export interface AgUiEndpoints {
  run: string;
  /** Interrupt requests of Ambient and CopilotKit. */
  interrupts: readonly { url: string; body: object }[];
  tasks: string;
  stop(taskId: string): string;
  /** Candidates for events between runs, in the order they are tried. */
  events: readonly { url: string; isOwn: boolean }[];
}

/**
 * @param eventsPath known path of the events, with `{threadId}` as placeholder
 * @throws TypeError for an invalid path
 */
export function agUiEndpoints(url: string, threadId: string, eventsPath?: string): AgUiEndpoints {
  const base = url.replace(/[?#].*$/, '').replace(/\/(run\/?)?$/, '');
  const query = /\?[^#]*/.exec(url)?.[0] ?? '';
  const beside = (path: string) => `${base}/${path}${query}`;
  const thread = encodeURIComponent(threadId);
  return {
    run: url,
    interrupts: [
      { url: beside('interrupt'), body: { threadId, thread_id: threadId } },
      { url: beside(`stop/${thread}`), body: {} },
    ],
    tasks: beside('tasks'),
    stop: (taskId) => beside(`tasks/${encodeURIComponent(taskId)}/stop`),
    events:
      eventsPath === undefined
        ? [
            { url: beside(`events/${thread}`), isOwn: true },
            { url: beside('events'), isOwn: false },
          ]
        : [
            {
              url: new URL(eventsPath.replaceAll('{threadId}', thread), url).href,
              isOwn: eventsPath.includes('{threadId}'),
            },
          ],
  };
}

interface RunControlsOptions {
  addresses: AgUiEndpoints;
  headers: Record<string, string>;
  /** Feeds traffic to the adapter. */
  pass(dir: 'in' | 'out', msg: object): Promise<void>;
  log(level: 'debug', message: string): void;
  signal: AbortSignal;
}

const REQUEST_MS = 15_000;

/** Sends requests that an AG-UI server may support besides runs: interrupting, listing and stopping tasks. */
export class RunControls {
  readonly #options: RunControlsOptions;
  #hasTasks = true;

  constructor(options: RunControlsOptions) {
    this.#options = options;
  }

  /** True if the server is known to list tasks. */
  get hasTasks(): boolean {
    return this.#hasTasks;
  }

  /** @returns true if the server accepted the interrupt */
  async interrupt(): Promise<boolean> {
    const { addresses, pass } = this.#options;
    for (const { url, body } of addresses.interrupts) {
      void pass('out', { method: 'POST', path: pathOf(url), body });
      const status = await this.#request(url, 'POST', body).then(
        (response) => response.status,
        () => 0,
      );
      await pass('in', { answer: 'interrupt', status });
      if (status >= 200 && status < 300) return true;
      if (!MISSING.has(status)) return false;
    }
    return false;
  }

  /** @returns the reason why the task continues, or null */
  async stop(taskId: string): Promise<string | null> {
    const url = this.#options.addresses.stop(taskId);
    void this.#options.pass('out', { method: 'POST', path: pathOf(url) });
    try {
      const response = await this.#request(url, 'POST', {});
      if (MISSING.has(response.status)) return 'this server can’t stop tasks';
      return response.ok ? null : await refusalText(response, url);
    } catch (error) {
      return `the server can’t be reached: ${connectionMessage(error)}`;
    }
  }

  /**
   * Feeds the task list to the adapter.
   * @param about known open tasks
   * @param missesEvents true if events don't arrive either, so that nothing would report the ends of tasks
   * @returns true if the server responded
   */
  async tasks(about: readonly string[], missesEvents: () => boolean): Promise<boolean> {
    const { addresses, pass, log } = this.#options;
    void pass('out', { method: 'GET', path: pathOf(addresses.tasks), about });
    try {
      const response = await this.#request(addresses.tasks, 'GET');
      const body = response.ok ? parseJson(await response.text()) : null;
      if (!response.ok) await response.body?.cancel();
      this.#hasTasks = body !== null || !(response.ok || MISSING.has(response.status));
      const isLost = !this.#hasTasks && missesEvents();
      const status = body === null ? 404 : response.status;
      await pass('in', { answer: 'tasks', status, body, ...(isLost ? { isDeaf: true } : {}) });
      return true;
    } catch (error) {
      log('debug', `could not read the server's task list: ${connectionMessage(error)}`);
      return false;
    }
  }

  #request(url: string, method: 'GET' | 'POST', body?: object): Promise<Response> {
    const headers = { accept: 'application/json', 'content-type': 'application/json', ...this.#options.headers };
    const signal = AbortSignal.any([this.#options.signal, AbortSignal.timeout(REQUEST_MS)]);
    return untimedRequest(url, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}), signal });
  }
}

function pathOf(url: string): string {
  return new URL(url).pathname;
}

interface BackgroundEventsOptions {
  addresses: AgUiEndpoints;
  headers: Record<string, string>;
  /** @param unheardSince epoch milliseconds; null unless a working stream was interrupted */
  onOpened(path: string, isOwn: boolean, unheardSince: number | null): void;
  /** @param data raw text, if it is not JSON */
  onEvent(event: unknown, data: string | null): void;
  /** @param isReopened true if it will be reopened */
  onEnded(reason: string, isReopened: boolean): void;
  onMissing(): void;
  onChanged(): void;
  log(level: 'info' | 'warn', message: string): void;
  random?: () => number;
  /** Longest retry delay. */
  longestMs?: number;
  missingMs?: number;
  now?: () => number;
  signal: AbortSignal;
}

/** Statuses of a missing route. */
const MISSING: ReadonlySet<number> = new Set([404, 405, 410, 501]);
const MISSING_MS = 5 * 60_000;
/** After more such responses in a row, a server that had a stream counts as having none. */
const MISSING_AFTER = 6;
/** A shorter interruption does not need a notice unless reopening failed. */
const NOTICE_MS = 5_000;
/** A silent stream counts as broken after this time, which is longer than the interval of heartbeats. */
const SILENT_MS = 5 * 60_000;

/**
 * Reads the event stream between runs for the life of the runner, as its only reader.
 *
 * Failure: never gives up. A server without such a stream is retried less and less often, down to once every five
 * minutes, and `trouble` names what was tried.
 */
export class BackgroundEvents {
  readonly #options: BackgroundEventsOptions;
  #isOpen = false;
  #trouble: string | null = null;
  #isMissing = false;
  #wasEverOpen = false;
  /** Start of the interruption, and whether reopening has failed. */
  #interruption: { since: number; hasFailed: boolean } | null = null;
  #lastStatus: number | null = null;

  constructor(options: BackgroundEventsOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Sentence that explains why no events arrive; null while they do. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** True if the server has no such stream. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Status of the last response that was not a stream. */
  get lastStatus(): number | null {
    return this.#lastStatus;
  }

  /** Resolves once the signal aborts. @param isKnown true if a previous process received events */
  async listen(isKnown: boolean): Promise<void> {
    if (isKnown) this.#interruption = { since: this.#now(), hasFailed: false };
    const { signal, random, longestMs, missingMs = MISSING_MS } = this.#options;
    await readEventStream({
      open: (until, lastEventId) => this.#open(until, lastEventId),
      onOpen: () => {},
      onEvent: ({ data }) => {
        const event = parseJson(data);
        this.#options.onEvent(event, event === null ? data : null);
      },
      onBroken: (broken) => this.#broken(broken),
      silentMs: SILENT_MS,
      missingMs,
      ...(longestMs === undefined ? {} : { longestMs }),
      ...(random === undefined ? {} : { random }),
      signal,
    });
    this.#close('the runner was stopped', false);
  }

  /** Opens the first URL with a stream; otherwise returns the last response. */
  async #open(signal: AbortSignal, lastEventId: string | null): Promise<Response> {
    const { addresses, headers, onOpened, onChanged, log } = this.#options;
    let response: Response | null = null;
    for (const { url, isOwn } of addresses.events) {
      await response?.body?.cancel().catch(() => undefined);
      const withAccept = {
        ...headers,
        accept: 'text/event-stream',
        ...(lastEventId ? { 'last-event-id': lastEventId } : {}),
      };
      response = await untimedRequest(url, { headers: withAccept, signal });
      if (response.ok && !isStream(response)) {
        await response.body?.cancel().catch(() => undefined);
        response = new Response(null, { status: 404 });
      }
      if (response.ok) {
        if (this.#trouble !== null) log('info', `reconnected to the event stream at ${displayUrl(url)}`);
        this.#isOpen = true;
        this.#isMissing = false;
        this.#lastStatus = null;
        this.#trouble = null;
        this.#wasEverOpen = true;
        onOpened(new URL(url).pathname, isOwn, this.#endInterruption());
        onChanged();
        return response;
      }
      if (!MISSING.has(response.status)) return response;
    }
    return response ?? new Response(null, { status: 404 });
  }

  /** @returns start of the interruption, if it needs a notice */
  #endInterruption(): number | null {
    const interruption = this.#interruption;
    this.#interruption = null;
    return interruption !== null && (interruption.hasFailed || this.#now() - interruption.since >= NOTICE_MS)
      ? interruption.since
      : null;
  }

  #broken({ reason, status, failures, silentMs, againInMs }: BrokenStream): void {
    if (this.#interruption !== null) this.#interruption.hasFailed = true;
    else if (this.#isOpen) this.#interruption = { since: this.#now() - silentMs, hasFailed: false };
    this.#close(reason, true);
    const { addresses, log, onChanged } = this.#options;
    const before = this.#trouble;
    const tried = addresses.events.map(({ url }) => displayUrl(url));
    this.#isMissing = status !== null && MISSING.has(status) && (!this.#wasEverOpen || failures > MISSING_AFTER);
    this.#lastStatus = status;
    if (this.#isMissing) {
      this.#trouble = `Work between turns is not shown: the server has no event stream at ${tried.join(' or ')} (${status}). If it has one elsewhere, pass --events-path.`;
    } else if (status === 401 || status === 403) {
      this.#trouble = `Work between turns is not shown: ${tried[0]} answers ${status}. Set INTERLUDE_AGENT_AUTHORIZATION to the required credentials.`;
    } else {
      this.#trouble = `Work between turns is not shown: the event stream ${failureText(reason)}. Reconnecting.`;
    }
    if (before !== this.#trouble) log('warn', `${this.#trouble} (next attempt in ${Math.round(againInMs / 1_000)} s)`);
    if (this.#isMissing) this.#options.onMissing();
    onChanged();
  }

  #close(reason: string, isReopened: boolean): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#options.onEnded(reason, isReopened);
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

function failureText(reason: string): string {
  return /^[A-Z_]+$/.test(reason) ? `can’t be reached (${reason})` : reason;
}
