import { page } from '@/components/live/api-fetch';
import { Store } from '@/components/live/store';
import { newId } from '@/components/ui/new-id';
import { takeFragmentToken } from './first-script';
import { judgeAnswer, placeFault } from './handshake';
import { consoleMessage, EMBED_VERSION, type EmbedState, type FrameMessage, type ReadyMessage, type EmbedTheme, isTheme } from './port-messages';
import { TokenKeeper } from './token-keeper';
import { checkToken, type TokenLimits } from './token-keeper';

export type EmbedPhase =
  /** `words`: what it waits for, once that takes long. */
  | { kind: 'waiting'; words: string | null }
  | { kind: 'refused'; why: string }
  | { kind: 'open'; limits: TokenLimits; isSignedOut: boolean };

const READY_AGAIN_MS = 500;
const ANSWERS_WITHIN_MS = 10_000;
const NO_ANSWER =
  'The page around this frame has not answered. Mount the frame with embed.js, or answer its "ready" message with "connect" as docs/embedding.md says.';
const NO_TOKEN =
  'The page around this frame has given no token that this server takes. See that its backend asks POST /api/v1/embed-tokens for one, and reload.';

/**
 * This page as an embed: connects with the page around it, holds the token that gives, and tells it what happens here.
 *
 * Ordering: the page's own way to ask the server stands before anything is asked.
 */
export class EmbedFrame extends Store {
  readonly #origins: readonly string[];
  readonly #keeper: TokenKeeper;
  #phase: EmbedPhase = { kind: 'waiting', words: null };
  #port: MessagePort | null = null;
  /** Of the page around this one; null until it is known. */
  #parentOrigin: string | null = null;
  #stop: () => void = () => {};
  #wantsHeight = false;
  /** Told of each token that is taken: what was refused may be asked again. */
  #onToken: () => void = () => {};

  /** @param origins those that may embed this server. `offsetMs`: by how much the server's clock is ahead */
  constructor(origins: readonly string[], offsetMs: number) {
    super();
    this.#origins = origins;
    this.#keeper = new TokenKeeper({
      ask: (why) => this.tell({ type: 'need-token', why }),
      check: checkToken,
      fault: ({ parentOrigin }) => originFault(parentOrigin, this.#parentOrigin),
      onGood: (limits) => {
        this.#set({ kind: 'open', limits, isSignedOut: false });
        this.#tellState('connected', null);
        this.#onToken();
      },
      onNone: () => {
        if (this.#phase.kind === 'open') this.#set({ ...this.#phase, isSignedOut: true });
        else if (this.#phase.kind === 'waiting') this.#set({ kind: 'waiting', words: NO_TOKEN });
        this.#tellState('signed-out', NO_TOKEN);
      },
      onFault: (why) => this.#refuse(why),
      now: () => Date.now() + offsetMs,
    });
    page.way = this.#keeper.fetch;
  }

  get phase(): EmbedPhase {
    return this.#phase;
  }

  /** Whether the page around this one asked how high it would like to be. */
  get wantsHeight(): boolean {
    return this.#wantsHeight;
  }

  whenTaken(listener: () => void): void {
    this.#onToken = listener;
  }

  /** @returns stop */
  start(): () => void {
    applyNamedTheme();
    const token = takeFragmentToken();
    const why = placeFault({ hasParent: window.parent !== window, isNested: window.parent !== window.top });
    if (why !== null) {
      this.#refuse(why);
      return () => {};
    }
    // Only browsers that keep this list know who is around; that it is one of those that may be, all of them see to.
    this.#parentOrigin = location.ancestorOrigins?.[0] ?? null;
    if (token !== null) void this.#keeper.give(token);
    this.#connect(token === null);
    return () => this.#stop();
  }

  tell(message: FrameMessage): void {
    this.#port?.postMessage(message);
  }

  /** Somebody asks for another token. */
  askAgain(): void {
    this.tell({ type: 'need-token', why: 'refused' });
  }

  #connect(isAwaited: boolean): void {
    const { parent } = window;
    const ready: ReadyMessage = { interlude: 'ready', version: EMBED_VERSION, nonce: newId() };
    const call = () => parent.postMessage(ready, '*');
    const calls = setInterval(call, READY_AGAIN_MS);
    const late = setTimeout(() => {
      clearInterval(calls);
      if (isAwaited && this.#phase.kind === 'waiting') this.#set({ kind: 'waiting', words: NO_ANSWER });
    }, ANSWERS_WITHIN_MS);
    const listen = (event: MessageEvent) => {
      const verdict = judgeAnswer(event, { parent, nonce: ready.nonce, origins: this.#origins });
      if (verdict.kind === 'ignored') return;
      this.#stop();
      if (verdict.kind === 'refused') return this.#refuse(verdict.why);
      this.#parentOrigin = verdict.origin;
      if (verdict.theme !== null) applyTheme(verdict.theme);
      this.#wantsHeight = verdict.wantsHeight;
      this.#open(verdict.port);
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
        this.#set({ kind: 'waiting', words: `${NO_TOKEN} It says: ${message.reason || 'nothing'}` });
    };
    if (this.#phase.kind === 'open') this.#tellState('connected', null);
    else this.#keeper.begin();
  }

  #refuse(why: string): void {
    this.#set({ kind: 'refused', why });
    this.#tellState('error', why);
  }

  #tellState(state: EmbedState, message: string | null): void {
    this.tell({ type: 'state', state, message });
  }

  #set(phase: EmbedPhase): void {
    this.#phase = phase;
    this.changed();
  }
}

function originFault(made: string | null, parent: string | null): string | null {
  if (made === null || parent === null || made === parent) return null;
  return `The token that came is for frames in pages of ${made}, and this one is in a page of ${parent}. Ask POST /api/v1/embed-tokens for one with "parentOrigin": "${parent}".`;
}

const DARK = '(prefers-color-scheme: dark)';

let chosen: EmbedTheme = 'system';
let isFollowing = false;

/** What the address names, until the page around this one says otherwise; not all of them do. */
function applyNamedTheme(): void {
  const named = new URLSearchParams(location.search).get('theme');
  applyTheme(isTheme(named) ? named : 'system');
}

/** Shows this page in a theme, as the dashboard's own switch does, but for nobody else and not for the next visit. */
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
