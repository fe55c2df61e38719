import { retryDelayMs } from '@interlude/protocol/sse';
import type { TokenNeed } from './port-messages';
import type { Me } from '@interlude/protocol/access';
import { API_ADDRESS } from '@interlude/protocol/version';

/** A token that is to come is waited for so long before a request gives up. */
const COMES_WITHIN_MS = 15_000;
/** The next one is asked for so long before one ends; of one that lasts minutes a quarter of its time would be too early. */
const LONGEST_LEAD_MS = 30_000;
/** A console that gives the same token again is not asked without a pause. */
const SOONEST_MS = 1_000;
/** Above this timers fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const AGAIN = { firstMs: 500, longestMs: 10_000 };
/** So many tokens in a row that the server refuses are no accident. */
const MOST_REFUSED = 3;

interface Options {
  /** Asks the console for a token. */
  ask: (why: TokenNeed) => void;
  check: (token: string) => Promise<Checked>;
  /** Why a token is not to be used here, though the server takes it; null if it is. */
  fault: (limits: TokenLimits) => string | null;
  onGood: (limits: TokenLimits) => void;
  /** No token came. One that comes later is taken all the same. */
  onNone: () => void;
  onFault: (why: string) => void;
  fetch?: typeof fetch;
  /** By the server's clock. */
  now: () => number;
}

/**
 * Holds the one token of an embed, in memory only, and has it renewed.
 *
 * Ordering: no token is used before the server has said what it is for, and of two that come the later one counts.
 * Failure: a request that is refused waits for the next token and is sent once more. Where none comes, it stays refused.
 */
export class TokenKeeper {
  readonly #options: Options;
  #token: string | null = null;
  #serial = 0;
  #refused = 0;
  #awaited: { promise: Promise<string | null>; settle: (token: string | null) => void } | null = null;
  #renewal: ReturnType<typeof setTimeout> | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  /** The console has given one. */
  async give(token: string): Promise<void> {
    this.#serial += 1;
    const serial = this.#serial;
    for (let attempt = 1; ; attempt += 1) {
      const checked = await this.#options.check(token);
      if (serial !== this.#serial) return;
      if (checked.kind === 'good') return this.#take(token, checked.limits);
      if (checked.kind === 'refused') return this.#refuse();
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs(attempt, AGAIN, Math.random())));
      if (serial !== this.#serial) return;
    }
  }

  /** Asks for the first one. */
  begin(): void {
    void this.#next(null);
  }

  /** As the browser's own, with the token and without any cookie. */
  readonly fetch: typeof fetch = async (input, init) => {
    const token = this.#token ?? (await this.#next(null));
    if (token === null) return new Response(null, { status: 401 });
    const answer = await this.#send(token, input, init);
    if (answer.status !== 401) return answer;
    const next = await this.#next(token);
    if (next === null) return answer;
    await answer.body?.cancel();
    return this.#send(next, input, init);
  };

  #send(token: string, input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${token}`);
    return (this.#options.fetch ?? fetch)(input, { ...init, headers, credentials: 'omit' });
  }

  #take(token: string, limits: TokenLimits): void {
    const why = this.#options.fault(limits);
    if (why !== null) {
      this.#drop();
      this.#options.onFault(why);
      return;
    }
    this.#token = token;
    this.#refused = 0;
    this.#awaited?.settle(token);
    this.#awaited = null;
    this.#renewBefore(limits.expiresAt);
    this.#options.onGood(limits);
  }

  #refuse(): void {
    this.#refused += 1;
    if (this.#refused < MOST_REFUSED) {
      this.#options.ask('refused');
      return;
    }
    this.#refused = 0;
    this.#drop();
    this.#options.onNone();
  }

  /** A token other than the one that was refused. @returns null if none came */
  async #next(refused: string | null): Promise<string | null> {
    if (this.#token !== null && this.#token !== refused) return this.#token;
    this.#token = null;
    if (this.#awaited === null) {
      let settle: (token: string | null) => void = () => {};
      const promise = new Promise<string | null>((resolve) => {
        settle = resolve;
      });
      const awaited = { promise, settle };
      this.#awaited = awaited;
      setTimeout(() => {
        if (this.#awaited !== awaited) return;
        this.#drop();
        this.#options.onNone();
      }, COMES_WITHIN_MS);
      this.#options.ask(refused === null ? 'first' : 'refused');
    }
    return this.#awaited.promise;
  }

  #drop(): void {
    this.#token = null;
    clearTimeout(this.#renewal);
    this.#awaited?.settle(null);
    this.#awaited = null;
  }

  #renewBefore(expiresAt: number | null): void {
    clearTimeout(this.#renewal);
    if (expiresAt === null) return;
    const left = Math.max(0, expiresAt - this.#options.now());
    const inMs = Math.min(LONGEST_TIMER_MS, Math.max(SOONEST_MS, left - Math.min(LONGEST_LEAD_MS, left / 4)));
    this.#renewal = setTimeout(() => this.#options.ask('expiring'), inMs);
  }
}

/** What the server says of an embed token to whoever carries it. */
export interface TokenLimits {
  /** The one origin that it was made for; null: any that may embed this server. */
  parentOrigin: string | null;
  /** Epoch milliseconds by the server's clock; null if that is not told. */
  expiresAt: number | null;
  mayAct: boolean;
}

export type Checked =
  | { kind: 'good'; limits: TokenLimits }
  /** Expired, revoked or never this server's. */
  | { kind: 'refused' }
  | { kind: 'away' };

const WITHIN_MS = 10_000;

/** Asks the server what a token is for. Never throws. */
export async function checkToken(token: string): Promise<Checked> {
  if (!isHeaderText(token)) return { kind: 'refused' };
  try {
    const answer = await fetch(`${API_ADDRESS}/me`, {
      credentials: 'omit',
      cache: 'no-store',
      headers: { accept: 'application/json', authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    if (answer.status === 401 || answer.status === 403) return { kind: 'refused' };
    if (!answer.ok) return { kind: 'away' };
    const me = (await answer.json()) as Me;
    // whatever else somebody hands to a frame may open more than the frame is for
    return me.kind === 'embed' ? { kind: 'good', limits: limitsOf(me) } : { kind: 'refused' };
  } catch {
    return { kind: 'away' };
  }
}

/** What can stand in a header: a token that can't would fail each request in a way that names it. */
function isHeaderText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

function limitsOf({ parentOrigin, expiresAt, role }: Me): TokenLimits {
  return { parentOrigin, expiresAt, mayAct: role === 'operator' };
}
