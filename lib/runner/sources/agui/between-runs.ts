import { parseJson } from '@interlude/protocol/fields';
import { type BrokenStream, displayUrl, readEventStream, untimedRequest } from '../../host/agent-http';
import type { AgUiAddresses } from './agui-addresses';
import { isStream } from './posted-run';

/**
 * Listens to what the agent says between runs, for as long as the runner lives: one reader, so that nobody takes its
 * events from it.
 *
 * Failure: it never gives up. A server without such a stream is asked ever less often, up to every five minutes, and
 * until then `deafness` says what was tried. One that had it is asked as after any other failure.
 */
export interface BetweenRunsOptions {
  addresses: AgUiAddresses;
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
export const MISSING: ReadonlySet<number> = new Set([404, 405, 410, 501]);
const MISSING_MS = 5 * 60_000;
/** After so many such answers in a row, a server that had a stream counts as having none. */
const MISSING_AFTER = 6;
/** A shorter interruption needs no notice, unless reopening the stream has failed. */
const UNHEARD_MS = 5_000;
/** Servers with such a stream send a heartbeat more often. */
const SILENT_MS = 5 * 60_000;

export class BetweenRuns {
  readonly #options: BetweenRunsOptions;
  #isOpen = false;
  #deafness: string | null = null;
  #isMissing = false;
  #wasEverOpen = false;
  /** When the last open stream broke, and whether reopening it has failed since. */
  #unheard: { since: number; hasFailed: boolean } | null = null;
  #lastStatus: number | null = null;

  constructor(options: BetweenRunsOptions) {
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
      answer = await untimedRequest(url, { headers: asked, signal });
      if (answer.ok && !isStream(answer)) {
        await answer.body?.cancel().catch(() => undefined);
        answer = new Response(null, { status: 404 });
      }
      if (answer.ok) {
        if (this.#deafness !== null)
          log('info', `it hears again what the agent does between turns (${displayUrl(url)})`);
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
    const tried = addresses.events.map(({ url }) => displayUrl(url));
    this.#isMissing = status !== null && MISSING.has(status) && (!this.#wasEverOpen || failures > MISSING_AFTER);
    this.#lastStatus = status;
    if (this.#isMissing) {
      this.#deafness = `What the agent does between turns is not heard: the server has no stream of events at ${tried.join(' or ')} (${status}). If it has one elsewhere, name it with --events-path.`;
    } else if (status === 401 || status === 403) {
      this.#deafness = `What the agent does between turns is not heard: ${tried[0]} answers ${status}. Set INTERLUDE_AGENT_AUTHORIZATION to what it asks for.`;
    } else {
      this.#deafness = `What the agent does between turns is not heard: the stream of events ${broke(reason)}. It is opened again by itself.`;
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
function broke(reason: string): string {
  return /^[A-Z_]+$/.test(reason) ? `can’t be reached (${reason})` : reason;
}
