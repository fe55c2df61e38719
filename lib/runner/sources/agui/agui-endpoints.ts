import { parseJson } from '@interlude/protocol/fields';
import { connectionMessage } from '../../server-request';
import { type BrokenStream, readEventStream } from '../../wire/event-stream';
import { patientRequest } from '../../wire/patient-request';
import { shownUrl } from '../../wire/shown-url';
import { isStream, refusalText } from './run-request';

/**
 * The addresses of an AG-UI server, from the one at which runs are posted. AG-UI itself knows only that one; the others
 * are those of the Ambient platform's runner, and of CopilotKit's runtime, which stand beside it.
 *
 * | runs | beside it |
 * |---|---|
 * | `http://host/` | `http://host/events/…` |
 * | `http://host/agui` | `http://host/agui/events/…` |
 * | `http://host/api/agent/default/run` (CopilotKit) | `http://host/api/agent/default/events/…` |
 *
 * A query string stays with all of them.
 */
export interface AgUiEndpoints {
  run: string;
  /** Where a run is interrupted, and with which body: Ambient's, CopilotKit's. */
  interrupts: readonly { url: string; body: object }[];
  tasks: string;
  stop(taskId: string): string;
  /** Where events between runs may be, in the order in which they are tried. */
  events: readonly { url: string; isOwn: boolean }[];
}

/**
 * @param eventsPath where the events are, if the caller knows: from the host's root, `{threadId}` in it is replaced
 * @throws TypeError if the path makes no address
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

/** What a server may have beside its runs: a way to interrupt them, its tasks, and a way to stop those. */
interface RunControlsOptions {
  addresses: AgUiEndpoints;
  headers: Record<string, string>;
  /** What passes, for the adapter. */
  pass(dir: 'in' | 'out', msg: object): Promise<void>;
  log(level: 'debug', message: string): void;
  signal: AbortSignal;
}

const REQUEST_MS = 15_000;

export class RunControls {
  readonly #options: RunControlsOptions;
  #hasTasks = true;

  constructor(options: RunControlsOptions) {
    this.#options = options;
  }

  /** Whether it lists its tasks, as far as is known. */
  get hasTasks(): boolean {
    return this.#hasTasks;
  }

  /** @returns whether the server has taken it */
  async interrupt(): Promise<boolean> {
    const { addresses, pass } = this.#options;
    for (const { url, body } of addresses.interrupts) {
      void pass('out', { method: 'POST', path: pathOf(url), body });
      const status = await this.#ask(url, 'POST', body).then(
        (answer) => answer.status,
        () => 0,
      );
      await pass('in', { answer: 'interrupt', status });
      if (status >= 200 && status < 300) return true;
      if (!MISSING.has(status)) return false;
    }
    return false;
  }

  /** @returns null, or why the task goes on */
  async stop(taskId: string): Promise<string | null> {
    const url = this.#options.addresses.stop(taskId);
    void this.#options.pass('out', { method: 'POST', path: pathOf(url) });
    try {
      const answer = await this.#ask(url, 'POST', {});
      if (MISSING.has(answer.status)) return 'this server has no way to stop a task';
      return answer.ok ? null : await refusalText(answer, url);
    } catch (error) {
      return `the server can’t be reached: ${connectionMessage(error)}`;
    }
  }

  /**
   * Has the adapter read the list of tasks.
   *
   * @param about those that are open as far as is known
   * @param isDeaf whether no events are heard either, so that nothing will ever tell their ends
   * @returns whether the server has answered
   */
  async tasks(about: readonly string[], isDeaf: () => boolean): Promise<boolean> {
    const { addresses, pass, log } = this.#options;
    void pass('out', { method: 'GET', path: pathOf(addresses.tasks), about });
    try {
      const answer = await this.#ask(addresses.tasks, 'GET');
      const body = answer.ok ? parseJson(await answer.text()) : null;
      if (!answer.ok) await answer.body?.cancel();
      this.#hasTasks = body !== null || !(answer.ok || MISSING.has(answer.status));
      const isLost = !this.#hasTasks && isDeaf();
      const status = body === null ? 404 : answer.status;
      await pass('in', { answer: 'tasks', status, body, ...(isLost ? { isDeaf: true } : {}) });
      return true;
    } catch (error) {
      log('debug', `the tasks of the server are not known: ${connectionMessage(error)}`);
      return false;
    }
  }

  #ask(url: string, method: 'GET' | 'POST', body?: object): Promise<Response> {
    const headers = { accept: 'application/json', 'content-type': 'application/json', ...this.#options.headers };
    const signal = AbortSignal.any([this.#options.signal, AbortSignal.timeout(REQUEST_MS)]);
    return patientRequest(url, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}), signal });
  }
}

function pathOf(url: string): string {
  return new URL(url).pathname;
}

/**
 * Listens to what the agent says between runs, for as long as the runner lives: one reader, so that nobody takes its
 * events from it.
 *
 * Failure: it never gives up. A server without such a stream is asked ever less often, up to every five minutes, and
 * until then `deafness` says what was tried. One that had it is asked as after any other failure.
 */
interface BackgroundEventsOptions {
  addresses: AgUiEndpoints;
  headers: Record<string, string>;
  /** @param unheardSince epoch milliseconds; null unless a stream that had worked was interrupted */
  onOpened(path: string, isOwn: boolean, unheardSince: number | null): void;
  /** @param data as it came, where it is no JSON */
  onEvent(event: unknown, data: string | null): void;
  /** @param isReopened it is opened again */
  onEnded(reason: string, isReopened: boolean): void;
  /** The server has no such stream. */
  onMissing(): void;
  /** `deafness` has changed. */
  onChanged(): void;
  log(level: 'info' | 'warn', message: string): void;
  random?: () => number;
  /** Of the waits that double. */
  longestMs?: number;
  missingMs?: number;
  now?: () => number;
  signal: AbortSignal;
}

/** Answers that say: there is no such thing here. */
const MISSING: ReadonlySet<number> = new Set([404, 405, 410, 501]);
const MISSING_MS = 5 * 60_000;
/** After so many such answers in a row, a server that had a stream counts as having none. */
const MISSING_AFTER = 6;
/** A shorter interruption needs no notice, unless reopening the stream has failed. */
const UNHEARD_MS = 5_000;
/** Servers with such a stream send a heartbeat more often. */
const SILENT_MS = 5 * 60_000;

export class BackgroundEvents {
  readonly #options: BackgroundEventsOptions;
  #isOpen = false;
  #deafness: string | null = null;
  #isMissing = false;
  #wasEverOpen = false;
  /** When the last open stream broke, and whether reopening it has failed since. */
  #unheard: { since: number; hasFailed: boolean } | null = null;
  #lastStatus: number | null = null;

  constructor(options: BackgroundEventsOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Why nothing is heard, in a sentence; null while something is. */
  get deafness(): string | null {
    return this.#deafness;
  }

  /** The server has no such stream. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Of the newest answer that was no stream. */
  get lastStatus(): number | null {
    return this.#lastStatus;
  }

  /** Resolves once the signal has fired. @param isKnown the agent has been heard before, by a previous process */
  async listen(isKnown: boolean): Promise<void> {
    if (isKnown) this.#unheard = { since: this.#now(), hasFailed: false };
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

  /** The first address that has a stream; the answer of the last one if none has. */
  async #open(signal: AbortSignal, lastEventId: string | null): Promise<Response> {
    const { addresses, headers, onOpened, onChanged, log } = this.#options;
    let answer: Response | null = null;
    for (const { url, isOwn } of addresses.events) {
      await answer?.body?.cancel().catch(() => undefined);
      const asked = {
        ...headers,
        accept: 'text/event-stream',
        ...(lastEventId ? { 'last-event-id': lastEventId } : {}),
      };
      answer = await patientRequest(url, { headers: asked, signal });
      if (answer.ok && !isStream(answer)) {
        await answer.body?.cancel().catch(() => undefined);
        answer = new Response(null, { status: 404 });
      }
      if (answer.ok) {
        if (this.#deafness !== null) log('info', `it hears again what the agent does between turns (${shownUrl(url)})`);
        this.#isOpen = true;
        this.#isMissing = false;
        this.#lastStatus = null;
        this.#deafness = null;
        this.#wasEverOpen = true;
        onOpened(new URL(url).pathname, isOwn, this.#endUnheard());
        onChanged();
        return answer;
      }
      if (!MISSING.has(answer.status)) return answer;
    }
    return answer ?? new Response(null, { status: 404 });
  }

  /** @returns when the interruption began, if it needs a notice */
  #endUnheard(): number | null {
    const unheard = this.#unheard;
    this.#unheard = null;
    return unheard !== null && (unheard.hasFailed || this.#now() - unheard.since >= UNHEARD_MS) ? unheard.since : null;
  }

  #broken({ reason, status, failures, silentMs, againInMs }: BrokenStream): void {
    if (this.#unheard !== null) this.#unheard.hasFailed = true;
    else if (this.#isOpen) this.#unheard = { since: this.#now() - silentMs, hasFailed: false };
    this.#close(reason, true);
    const { addresses, log, onChanged } = this.#options;
    const before = this.#deafness;
    const tried = addresses.events.map(({ url }) => shownUrl(url));
    this.#isMissing = status !== null && MISSING.has(status) && (!this.#wasEverOpen || failures > MISSING_AFTER);
    this.#lastStatus = status;
    if (this.#isMissing) {
      this.#deafness = `What the agent does between turns is not heard: the server has no stream of events at ${tried.join(' or ')} (${status}). If it has one elsewhere, name it with --events-path.`;
    } else if (status === 401 || status === 403) {
      this.#deafness = `What the agent does between turns is not heard: ${tried[0]} answers ${status}. Set INTERLUDE_AGENT_AUTHORIZATION to what it asks for.`;
    } else {
      this.#deafness = `What the agent does between turns is not heard: the stream of events ${failureText(reason)}. It is opened again by itself.`;
    }
    if (before !== this.#deafness) log('warn', `${this.#deafness} (again in ${Math.round(againInMs / 1_000)} s)`);
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

/** `ended`, `answered 502` or the code of a connection. */
function failureText(reason: string): string {
  return /^[A-Z_]+$/.test(reason) ? `can’t be reached (${reason})` : reason;
}
