import type { Me } from '@interlude/protocol/access';
import { retryDelayMs } from '@interlude/protocol/sse';
import { API_ADDRESS } from '@interlude/protocol/version';
import type { TokenNeed } from './port-messages';

/** Timeout of a token request. */
const COMES_WITHIN_MS = 15_000;
/** Maximum time before expiry at which the next token is requested. */
const LONGEST_LEAD_MS = 30_000;
/** Minimum pause between requests, for consoles that repeat the same token. */
const SOONEST_MS = 1_000;
/** Browsers fire longer timers immediately. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const AGAIN = { firstMs: 500, longestMs: 10_000 };
/** Number of consecutive refused tokens before giving up. */
const MAX_REFUSED = 3;

interface Options {
  /** Requests a token from the console. */
  request: (why: TokenNeed) => void;
  check: (token: string) => Promise<Checked>;
  /** Returns the reason a valid token can't be used here; null if it can. */
  fault: (limits: TokenLimits) => string | null;
  onGood: (limits: TokenLimits) => void;
  /** Called when no token arrived in time. A later one is still accepted. */
  onNone: () => void;
  onFault: (why: string) => void;
  fetch?: typeof fetch;
  /** The time on the server's clock. */
  now: () => number;
}

/**
 * Keeps the token of an embed in memory, and renews it.
 *
 * Ordering: a token is used only after the server has described it. Of two tokens, the later one wins.
 * Failure: a refused request waits for the next token and is sent once more. Without a new token, it stays refused.
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

  /** Accepts a token from the console. */
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

  /** Requests the first token. */
  begin(): void {
    void this.#next(null);
  }

  /** Like the browser's fetch, but with the token and without cookies. */
  readonly fetch: typeof fetch = async (input, init) => {
    const token = this.#token ?? (await this.#next(null));
    if (token === null) return new Response(null, { status: 401 });
    const response = await this.#send(token, input, init);
    if (response.status !== 401) return response;
    const next = await this.#next(token);
    if (next === null) return response;
    await response.body?.cancel();
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
    if (this.#refused < MAX_REFUSED) {
      this.#options.request('refused');
      return;
    }
    this.#refused = 0;
    this.#drop();
    this.#options.onNone();
  }

  /** Waits for a token other than the refused one. @returns null if none arrives */
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
      this.#options.request(refused === null ? 'first' : 'refused');
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
    this.#renewal = setTimeout(() => this.#options.request('expiring'), inMs);
  }
}

/** The server's description of an embed token. */
export interface TokenLimits {
  /** The only origin that may use it; null: any that may embed this server. */
  parentOrigin: string | null;
  /** Epoch milliseconds by the server's clock; null if unknown. */
  expiresAt: number | null;
  mayAct: boolean;
}

export type Checked =
  | { kind: 'good'; limits: TokenLimits }
  /** Expired, revoked or from another server. */
  | { kind: 'refused' }
  | { kind: 'away' };

const WITHIN_MS = 10_000;

/** Reads a token's description from the server. Never throws. */
export async function checkToken(token: string): Promise<Checked> {
  if (!isHeaderText(token)) return { kind: 'refused' };
  try {
    const response = await fetch(`${API_ADDRESS}/me`, {
      credentials: 'omit',
      cache: 'no-store',
      headers: { accept: 'application/json', authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    if (response.status === 401 || response.status === 403) return { kind: 'refused' };
    if (!response.ok) return { kind: 'away' };
    const me = (await response.json()) as Me;
    // other tokens may allow more than the frame shows
    return me.kind === 'embed' ? { kind: 'good', limits: limitsOf(me) } : { kind: 'refused' };
  } catch {
    return { kind: 'away' };
  }
}

/**
 * Valid header characters. A token with other characters would fail each request with an error that contains the token.
 */
function isHeaderText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

function limitsOf({ parentOrigin, expiresAt, role }: Me): TokenLimits {
  return { parentOrigin, expiresAt, mayAct: role === 'operator' };
}
