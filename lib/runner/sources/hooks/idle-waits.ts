import { randomUUID } from 'node:crypto';
import type { WaitAnswer, WaitCall } from '../../host/control-port';

/**
 * Agents that listen for a message while they are idle: each by a command of its own (`interlude wait`), whose end wakes
 * it. A wait asks, is answered in a while that there is nothing yet, and asks again.
 *
 * Ordering: what is handed to a wait is stored as handed before the wait has it.
 * Failure: a wait says that it has shown what it was handed. One that is gone, or does not say so in time, gives it back;
 * if it dies between the two, the agent is given the message a second time, which says that this may be so.
 */
export interface IdleWaitsOptions {
  /** A wait can be handed something now, or none listens any more. */
  onChange: (sessionId: string) => void;
  /** It has not shown what it was handed. */
  onGivenBack: (handed: Handed) => void;
}

/** What a wait was handed and has not shown yet. */
export interface Handed {
  claim: string;
  sessionId: string;
  messageIds: readonly string[];
}

interface Listener {
  waitId: string;
  /** Between two of its calls there is none. */
  answer: ((answer: WaitAnswer) => void) | null;
}

/** Between two calls of a wait. */
const GAP_MS = 5_000;
/** Between what a wait is handed and its word that it has shown it. */
const SHOWN_MS = 5_000;
const AGAIN: WaitAnswer = { kind: 'again' };
const TAKEN_PLACE: WaitAnswer = { kind: 'over', reason: 'another wait listens for this session already' };

export class IdleWaits {
  readonly #options: IdleWaitsOptions;
  readonly #listeners = new Map<string, Listener>();
  readonly #handed = new Map<string, Handed & { timer: NodeJS.Timeout }>();
  #isClosed = false;

  constructor(options: IdleWaitsOptions) {
    this.#options = options;
  }

  isListening(sessionId: string): boolean {
    return this.#listeners.has(sessionId);
  }

  /** One call of a wait. */
  listen(sessionId: string, { waitId, withinMs, signal }: Omit<WaitCall, 'pids'>): Promise<WaitAnswer> {
    if (this.#isClosed) return new Promise((resolve) => signal.addEventListener('abort', () => resolve(AGAIN)));
    const known = this.#listeners.get(sessionId);
    if (known !== undefined && known.waitId !== waitId) return Promise.resolve(TAKEN_PLACE);
    known?.answer?.(AGAIN);
    return new Promise((resolve) => {
      const listener: Listener = { waitId, answer: null };
      const leave = () => this.#forget(sessionId, listener);
      const gone = () => {
        clearTimeout(timer);
        listener.answer = null;
        leave();
        resolve(AGAIN);
      };
      const timer = setTimeout(() => listener.answer?.(AGAIN), withinMs);
      listener.answer = (answer) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', gone);
        listener.answer = null;
        if (answer.kind === 'again') setTimeout(leave, GAP_MS).unref();
        else leave();
        resolve(answer);
      };
      signal.addEventListener('abort', gone);
      this.#listeners.set(sessionId, listener);
      this.#options.onChange(sessionId);
    });
  }

  /**
   * Hands messages to the wait that listens.
   *
   * @param store keeps what is handed, before the wait has it
   * @returns whether one listened
   */
  async hand(
    sessionId: string,
    messageIds: readonly string[],
    text: string,
    store: (handed: Handed) => Promise<void>,
  ): Promise<boolean> {
    const listener = this.#listeners.get(sessionId);
    const answer = listener?.answer;
    if (!listener || !answer) return false;
    listener.answer = null;
    const handed: Handed = { claim: randomUUID(), sessionId, messageIds };
    await store(handed);
    this.expect(handed);
    answer({ kind: 'message', claim: handed.claim, text });
    return true;
  }

  /** Something was handed, by this process or the one before, and the word that it was shown is to come. */
  expect(handed: Handed): void {
    const timer = setTimeout(() => {
      if (this.taken(handed.claim) !== null) this.#options.onGivenBack(handed);
    }, SHOWN_MS);
    this.#handed.set(handed.claim, { ...handed, timer });
  }

  /** @returns what it was; null for what was not handed, or was given back */
  taken(claim: string): Handed | null {
    const handed = this.#handed.get(claim);
    if (handed === undefined) return null;
    clearTimeout(handed.timer);
    this.#handed.delete(claim);
    const { sessionId, messageIds } = handed;
    return { claim, sessionId, messageIds };
  }

  /** Nobody is there to be woken. */
  end(sessionId: string, reason: string): void {
    const listener = this.#listeners.get(sessionId);
    if (listener?.answer) listener.answer({ kind: 'over', reason });
    else if (listener !== undefined) this.#forget(sessionId, listener);
  }

  /** Who listens is cut off with the control port, and asks the next companion. */
  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#handed.values()) clearTimeout(timer);
    this.#listeners.clear();
  }

  /** Unless the wait has called again. */
  #forget(sessionId: string, listener: Listener): void {
    if (this.#listeners.get(sessionId) !== listener || listener.answer !== null) return;
    this.#listeners.delete(sessionId);
    this.#options.onChange(sessionId);
  }
}
