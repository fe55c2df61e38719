import { randomUUID } from 'node:crypto';
import type { WaitAnswer, WaitCall } from '../../control-port/routes';
import { agentCommand } from '../../shown-command.mjs';
import type { MessageInbox } from './message-inbox';
import { pendingReplyPrompt } from './message-inbox';
import type { WaitMessage } from './message-tracker';
import type { SessionMirror } from './session-mirror';

/**
 * What becomes of messages for terminals in which no turn runs: they are for the wait of the agent, if one listens, and
 * refused otherwise. What came while a turn ran is its stop hook's, unless that has passed it by.
 */
export interface IdleDeliveryOptions {
  inbox: MessageInbox;
  mirrors: ReadonlyMap<string, SessionMirror>;
  /** Agents are told, where they come to rest, how they can be reached while they are idle. */
  offers: boolean;
  onChange: () => void;
  log: (level: 'warn', message: string) => void;
}

export const IN_TERMINAL = 'this session runs in a terminal';
const LISTEN = `Messages from the dashboard reach you while you are idle only if you listen for them. To do that, run this with the Bash tool, in the background (run_in_background), and then end your turn; it ends when a message has come, and its output is that message:
  ${agentCommand(['wait'])}
Nobody waits for an answer to this note, and you may go without it.`;
const AGAIN = 'To be reached while you are idle once more, run the same command in the background again.';

export class IdleDelivery {
  readonly #options: IdleDeliveryOptions;
  readonly #waits = new WaitRegistry({
    onChange: (sessionId) => this.#changed(sessionId),
    onGivenBack: (handed) => void this.#givenBack(handed),
  });

  constructor(options: IdleDeliveryOptions) {
    this.#options = options;
  }

  isListening(sessionId: string): boolean {
    return this.#waits.isListening(sessionId);
  }

  /** What the companion before this one handed to waits, as it left it. */
  recall(sessionId: string, waited: readonly WaitMessage[]): void {
    for (const { claim, messageIds, isShown } of waited) {
      if (!isShown) this.#waits.expect({ claim, sessionId, messageIds });
    }
  }

  /** @returns null if none of the caller's processes is that of a terminal */
  wait(call: WaitCall): Promise<WaitAnswer> | null {
    for (const pid of call.pids) {
      const mirror = [...this.#options.mirrors.values()].findLast((one) => !one.isLeft && one.process?.pid === pid);
      if (mirror !== undefined) return this.#waits.listen(mirror.sessionId, call);
    }
    return null;
  }

  /** A wait has shown what it was handed. @returns whether it had been */
  async taken(claim: string): Promise<boolean> {
    const handed = this.#waits.taken(claim);
    const mirror = this.#options.mirrors.get(handed?.sessionId ?? '');
    if (handed === null || mirror === undefined) return false;
    await mirror.keep((messages, now) => {
      const messageIds = messages.waited.shown(claim, now);
      messages.reached(messageIds);
      this.#options.inbox.handedOver(messageIds);
    });
    // It was of use: the agent is reminded of it, if it does not think of it itself.
    mirror.offeredToListen(false);
    return true;
  }

  /** All that is there for it. @returns whether it listens */
  handTo(mirror: SessionMirror): boolean {
    const { sessionId } = mirror;
    if (!this.#waits.isListening(sessionId)) return false;
    const waiting = this.#options.inbox.waitingFor(sessionId).filter(({ messageId }) => !mirror.isInHand(messageId));
    if (waiting.length === 0) return true;
    const { text, messageIds } = pendingReplyPrompt(waiting);
    const store = ({ claim }: Handoff) => {
      // At once: from here on no stop hook takes them.
      mirror.messages.waited.put(claim, messageIds, Date.now());
      return mirror.keep();
    };
    void this.#waits.hand(sessionId, messageIds, `${text}\n\n${AGAIN}`, store);
    return true;
  }

  /** Its turn is over, and no stop hook took what waits. */
  turnEnded(mirror: SessionMirror): void {
    if (!this.handTo(mirror)) this.#refuse(mirror, 'its turn ended before the message could be handed over');
  }

  /** @returns what the agent is told of listening, once before it comes to rest, and again when that was missed */
  offerTo(mirror: SessionMirror): string | null {
    const isFor = this.#options.offers && mirror.isInteractive && !mirror.wasOfferedToListen;
    return isFor && !this.isListening(mirror.sessionId) ? LISTEN : null;
  }

  /** Nobody is there to be woken any more. */
  left(sessionId: string): void {
    this.#waits.end(sessionId, 'the terminal session was left');
  }

  close(): void {
    this.#waits.close();
  }

  #changed(sessionId: string): void {
    const { mirrors, onChange } = this.#options;
    onChange();
    const mirror = mirrors.get(sessionId);
    if (mirror === undefined || mirror.isBusy || this.handTo(mirror)) return;
    this.#refuse(mirror, 'is idle and does not listen any more');
  }

  #refuse(mirror: SessionMirror, why: string): void {
    const { inbox } = this.#options;
    const reason = `${IN_TERMINAL}, and ${why}`;
    const refused = inbox.refuse(mirror.sessionId, reason, (messageId) => mirror.isInHand(messageId));
    // Had it listened, they would have reached it.
    if (refused > 0) mirror.offeredToListen(false);
  }

  /** Who was to show it is gone. */
  async #givenBack({ claim, sessionId, messageIds }: Handoff): Promise<void> {
    const { mirrors, inbox, log } = this.#options;
    const mirror = mirrors.get(sessionId);
    if (mirror === undefined) return;
    await mirror.keep((messages) => messages.waited.givenBack(claim));
    // The transcript may have said in the meantime that it was shown all the same.
    const back = messageIds.filter((messageId) => !mirror.wasHandedOver(messageId));
    if (back.length > 0) log('warn', `a wait of ${sessionId} did not show ${back.length} message(s) it was handed`);
    inbox.givenBack(back);
    this.#changed(sessionId);
  }
}

/**
 * Agents that listen for a message while they are idle: each by a command of its own (`interlude wait`), whose end wakes
 * it. A wait asks, is answered in a while that there is nothing yet, and asks again.
 *
 * Ordering: what is handed to a wait is stored as handed before the wait has it.
 * Failure: a wait says that it has shown what it was handed. One that is gone, or does not say so in time, gives it back;
 * if it dies between the two, the agent is given the message a second time, which says that this may be so.
 */
interface WaitRegistryOptions {
  /** A wait can be handed something now, or none listens any more. */
  onChange: (sessionId: string) => void;
  /** It has not shown what it was handed. */
  onGivenBack: (handed: Handoff) => void;
}

/** What a wait was handed and has not shown yet. */
interface Handoff {
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
const POLL_AGAIN: WaitAnswer = { kind: 'again' };
const TAKEN_PLACE: WaitAnswer = { kind: 'over', reason: 'another wait listens for this session already' };

class WaitRegistry {
  readonly #options: WaitRegistryOptions;
  readonly #listeners = new Map<string, Listener>();
  readonly #handed = new Map<string, Handoff & { timer: NodeJS.Timeout }>();
  #isClosed = false;

  constructor(options: WaitRegistryOptions) {
    this.#options = options;
  }

  isListening(sessionId: string): boolean {
    return this.#listeners.has(sessionId);
  }

  /** One call of a wait. */
  listen(sessionId: string, { waitId, withinMs, signal }: Omit<WaitCall, 'pids'>): Promise<WaitAnswer> {
    if (this.#isClosed) return new Promise((resolve) => signal.addEventListener('abort', () => resolve(POLL_AGAIN)));
    const known = this.#listeners.get(sessionId);
    if (known !== undefined && known.waitId !== waitId) return Promise.resolve(TAKEN_PLACE);
    known?.answer?.(POLL_AGAIN);
    return new Promise((resolve) => {
      const listener: Listener = { waitId, answer: null };
      const leave = () => this.#forget(sessionId, listener);
      const gone = () => {
        clearTimeout(timer);
        listener.answer = null;
        leave();
        resolve(POLL_AGAIN);
      };
      const timer = setTimeout(() => listener.answer?.(POLL_AGAIN), withinMs);
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
    store: (handed: Handoff) => Promise<void>,
  ): Promise<boolean> {
    const listener = this.#listeners.get(sessionId);
    const answer = listener?.answer;
    if (!listener || !answer) return false;
    listener.answer = null;
    const handed: Handoff = { claim: randomUUID(), sessionId, messageIds };
    await store(handed);
    this.expect(handed);
    answer({ kind: 'message', claim: handed.claim, text });
    return true;
  }

  /** Something was handed, by this process or the one before, and the word that it was shown is to come. */
  expect(handed: Handoff): void {
    const timer = setTimeout(() => {
      if (this.taken(handed.claim) !== null) this.#options.onGivenBack(handed);
    }, SHOWN_MS);
    this.#handed.set(handed.claim, { ...handed, timer });
  }

  /** @returns what it was; null for what was not handed, or was given back */
  taken(claim: string): Handoff | null {
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
