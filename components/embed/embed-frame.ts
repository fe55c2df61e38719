import { pageTransport } from '@/components/live/api-fetch';
import { Store } from '@/components/live/store';
import { newId } from '@/components/ui/new-id';
import { takeFragmentToken } from './first-script';
import { placeFault, validateAnswer } from './handshake';
import {
  consoleMessage,
  EMBED_VERSION,
  type EmbedState,
  type EmbedTheme,
  type FrameMessage,
  isTheme,
  type ReadyMessage,
} from './port-messages';
import { checkToken, TokenKeeper, type TokenLimits } from './token-keeper';

export type EmbedPhase =
  /** `words`: shown after a long wait. */
  | { kind: 'waiting'; words: string | null }
  | { kind: 'refused'; why: string }
  | { kind: 'open'; limits: TokenLimits; isSignedOut: boolean };

const READY_AGAIN_MS = 500;
const ANSWERS_WITHIN_MS = 10_000;
const NO_ANSWER =
  'The page around this frame hasn’t answered. Mount the frame with embed.js, or answer its "ready" message with "connect" as described in docs/embedding.md.';
const NO_TOKEN =
  'The page around this frame hasn’t provided a valid token. Check that its backend requests one with POST /api/v1/embed-tokens, then reload.';

/**
 * Connects an embed with the embedding page: receives tokens, and reports state, height and navigation.
 *
 * Ordering: the constructor replaces the page's fetch before the first request.
 */
export class EmbedFrame extends Store {
  readonly #origins: readonly string[];
  readonly #keeper: TokenKeeper;
  #phase: EmbedPhase = { kind: 'waiting', words: null };
  #port: MessagePort | null = null;
  /** Origin of the embedding page; null until known. */
  #parentOrigin: string | null = null;
  #stop: () => void = () => {};
  #wantsHeight = false;
  /** Called after each accepted token, so that refused requests can be repeated. */
  #onToken: () => void = () => {};

  /** @param origins allowed to embed this server. `offsetMs`: milliseconds by which the server's clock is ahead */
  constructor(origins: readonly string[], offsetMs: number) {
    super();
    this.#origins = origins;
    this.#keeper = new TokenKeeper({
      request: (why) => this.post({ type: 'need-token', why }),
      check: checkToken,
      fault: ({ parentOrigin }) => originFault(parentOrigin, this.#parentOrigin),
      onGood: (limits) => {
        this.#set({ kind: 'open', limits, isSignedOut: false });
        this.#postState('connected', null);
        this.#onToken();
      },
      onNone: () => {
        if (this.#phase.kind === 'open') this.#set({ ...this.#phase, isSignedOut: true });
        else if (this.#phase.kind === 'waiting') this.#set({ kind: 'waiting', words: NO_TOKEN });
        this.#postState('signed-out', NO_TOKEN);
      },
      onFault: (why) => this.#refuse(why),
      now: () => Date.now() + offsetMs,
    });
    pageTransport.fetch = this.#keeper.fetch;
  }

  get phase(): EmbedPhase {
    return this.#phase;
  }

  /** True if the embedding page wants height reports. */
  get wantsHeight(): boolean {
    return this.#wantsHeight;
  }

  onTokenAccepted(listener: () => void): void {
    this.#onToken = listener;
  }

  /** @returns a function that stops it */
  start(): () => void {
    applyNamedTheme();
    const token = takeFragmentToken();
    const why = placeFault({ hasParent: window.parent !== window, isNested: window.parent !== window.top });
    if (why !== null) {
      this.#refuse(why);
      return () => {};
    }
    // Missing in some browsers. The content policy enforces the allowed origins in any case.
    this.#parentOrigin = location.ancestorOrigins?.[0] ?? null;
    if (token !== null) void this.#keeper.give(token);
    this.#connect(token === null);
    return () => this.#stop();
  }

  post(message: FrameMessage): void {
    this.#port?.postMessage(message);
  }

  /** Requests another token. */
  askAgain(): void {
    this.post({ type: 'need-token', why: 'refused' });
  }

  #connect(needsAnswer: boolean): void {
    const { parent } = window;
    const ready: ReadyMessage = { interlude: 'ready', version: EMBED_VERSION, nonce: newId() };
    const call = () => parent.postMessage(ready, '*');
    const calls = setInterval(call, READY_AGAIN_MS);
    const late = setTimeout(() => {
      clearInterval(calls);
      if (needsAnswer && this.#phase.kind === 'waiting') this.#set({ kind: 'waiting', words: NO_ANSWER });
    }, ANSWERS_WITHIN_MS);
    const listen = (event: MessageEvent) => {
      const result = validateAnswer(event, { parent, nonce: ready.nonce, origins: this.#origins });
      if (result.kind === 'ignored') return;
      this.#stop();
      if (result.kind === 'refused') return this.#refuse(result.why);
      this.#parentOrigin = result.origin;
      if (result.theme !== null) applyTheme(result.theme);
      this.#wantsHeight = result.wantsHeight;
      this.#open(result.port);
    };
    addEventListener('message', listen);
    this.#stop = () => {
      clearInterval(calls);
      clearTimeout(late);
      removeEventListener('message', listen);
    };
    call();
  }

  #open(port: MessagePort): void {
    this.#port = port;
    port.onmessage = ({ data }) => {
      const message = consoleMessage(data);
      if (message?.type === 'token') void this.#keeper.give(message.token);
      else if (message?.type === 'theme') applyTheme(message.theme);
      else if (message?.type === 'no-token' && this.#phase.kind === 'waiting')
        this.#set({ kind: 'waiting', words: `${NO_TOKEN} Reason: ${message.reason || 'none given'}` });
    };
    if (this.#phase.kind === 'open') this.#postState('connected', null);
    else this.#keeper.begin();
  }

  #refuse(why: string): void {
    this.#set({ kind: 'refused', why });
    this.#postState('error', why);
  }

  #postState(state: EmbedState, message: string | null): void {
    this.post({ type: 'state', state, message });
  }

  #set(phase: EmbedPhase): void {
    this.#phase = phase;
    this.changed();
  }
}

function originFault(allowed: string | null, parent: string | null): string | null {
  if (allowed === null || parent === null || allowed === parent) return null;
  return `The token is for pages from ${allowed}, but this frame is on a page from ${parent}. Request one with POST /api/v1/embed-tokens and "parentOrigin": "${parent}".`;
}

const DARK = '(prefers-color-scheme: dark)';

let chosen: EmbedTheme = 'system';
let isFollowing = false;

/** Applies the theme from the URL, until the embedding page sets another. */
function applyNamedTheme(): void {
  const named = new URLSearchParams(location.search).get('theme');
  applyTheme(isTheme(named) ? named : 'system');
}

/** Applies a theme without storing it. */
function applyTheme(theme: EmbedTheme): void {
  chosen = theme;
  const system = matchMedia(DARK);
  const paint = () => {
    const isDark = chosen === 'dark' || (chosen === 'system' && system.matches);
    const { classList } = document.documentElement;
    classList.toggle('dark', isDark);
    classList.toggle('light', !isDark);
  };
  paint();
  if (isFollowing) return;
  isFollowing = true;
  system.addEventListener('change', paint);
}
