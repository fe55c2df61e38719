import { randomUUID } from 'node:crypto';
import type { WaitCall, WaitResponse } from '../../host/control-port';
import { agentCommand } from '../../host/own-program.mjs';
import type { MessageInbox } from './message-inbox';
import { obligationPrompt } from './message-inbox';
import type { WaitMessage } from './mirror-state';
import type { SessionMirror } from './session-mirror';

export interface IdleDeliveryOptions {
  inbox: MessageInbox;
  mirrors: ReadonlyMap<string, SessionMirror>;
  /** True if idle agents get a hint that they can listen. */
  offers: boolean;
  onChange: () => void;
  log: (level: 'warn', message: string) => void;
}

export const IN_TERMINAL = 'this session runs in a terminal';
const LISTEN = `Messages from the dashboard reach you while you are idle only if you listen for them. To listen, run this with the Bash tool in the background (run_in_background) and end your turn. The command exits when a message arrives and prints it:
  ${agentCommand(['wait'])}
This note needs no answer, and listening is optional.`;
const AGAIN = 'To keep listening while you are idle, run the same command in the background again.';

/**
 * Delivers messages to idle terminals through the agent's wait command. If the agent does not listen, messages are
 * refused. A message that arrives during a turn is left to the turn's stop hook, unless that has already run.
 */
export class IdleDelivery {
  readonly #options: IdleDeliveryOptions;
  readonly #waits = new WaitRegistry({
    onChange: (sessionId) => this.#changed(sessionId),
    onReturned: (handoff) => void this.#returned(handoff),
  });

  constructor(options: IdleDeliveryOptions) {
    this.#options = options;
  }

  isListening(sessionId: string): boolean {
    return this.#waits.isListening(sessionId);
  }

  /** Restores handoffs of the previous companion. */
  restore(sessionId: string, waited: readonly WaitMessage[]): void {
    for (const { claim, messageIds, isShown } of waited) {
      if (!isShown) this.#waits.expect({ claim, sessionId, messageIds });
    }
  }

  /** @returns null if no process of the caller belongs to a terminal */
  wait(call: WaitCall): Promise<WaitResponse> | null {
    for (const pid of call.pids) {
      const mirror = [...this.#options.mirrors.values()].findLast((one) => !one.isLeft && one.process?.pid === pid);
      if (mirror !== undefined) return this.#waits.listen(mirror.sessionId, call);
    }
    return null;
  }

  /** Confirms that a wait has shown its messages. @returns true if the messages were handed to it */
  async confirm(claim: string): Promise<boolean> {
    const handoff = this.#waits.confirm(claim);
    const mirror = this.#options.mirrors.get(handoff?.sessionId ?? '');
    if (handoff === null || mirror === undefined) return false;
    await mirror.keep((messages, now) => {
      const messageIds = messages.waited.shown(claim, now);
      messages.reached(messageIds);
      this.#options.inbox.delivered(messageIds);
    });
    // The agent used the wait, so it gets the hint again.
    mirror.offeredToListen(false);
    return true;
  }

  /** Hands all waiting messages to the agent. @returns true if the agent listens */
  handOver(mirror: SessionMirror): boolean {
    const { sessionId } = mirror;
    if (!this.#waits.isListening(sessionId)) return false;
    const waiting = this.#options.inbox.waitingFor(sessionId).filter(({ messageId }) => !mirror.isInFlight(messageId));
    if (waiting.length === 0) return true;
    const { text, messageIds } = obligationPrompt(waiting);
    const store = ({ claim }: Handoff) => {
      // Recorded before storing, so that no stop hook delivers the messages too.
      mirror.messages.waited.put(claim, messageIds, Date.now());
      return mirror.keep();
    };
    void this.#waits.hand(sessionId, messageIds, `${text}\n\n${AGAIN}`, store);
    return true;
  }

  /** Handles the end of a turn whose stop hook did not deliver the messages. */
  turnEnded(mirror: SessionMirror): void {
    if (!this.handOver(mirror)) this.#refuse(mirror, 'its turn ended before the message could be delivered');
  }

  /** @returns the hint about listening, once per idle period and again after a missed message */
  offerTo(mirror: SessionMirror): string | null {
    const isFor = this.#options.offers && mirror.isInteractive && !mirror.wasOfferedToListen;
    return isFor && !this.isListening(mirror.sessionId) ? LISTEN : null;
  }

  /** Ends the wait of a closed terminal session: no agent is left to wake. */
  sessionLeft(sessionId: string): void {
    this.#waits.end(sessionId, 'the terminal session was closed');
  }

  close(): void {
    this.#waits.close();
  }

  #changed(sessionId: string): void {
    const { mirrors, onChange } = this.#options;
    onChange();
    const mirror = mirrors.get(sessionId);
    if (mirror === undefined || mirror.isBusy || this.handOver(mirror)) return;
    this.#refuse(mirror, 'it is idle and no longer listens');
  }

  #refuse(mirror: SessionMirror, detail: string): void {
    const { inbox } = this.#options;
    const reason = `${IN_TERMINAL}, and ${detail}`;
    const refused = inbox.refuse(mirror.sessionId, reason, (messageId) => mirror.isInFlight(messageId));
    // A listening agent would have received these messages, so it gets the hint again.
    if (refused > 0) mirror.offeredToListen(false);
  }

  /** Handles a wait that ended without showing its messages. */
  async #returned({ claim, sessionId, messageIds }: Handoff): Promise<void> {
    const { mirrors, inbox, log } = this.#options;
    const mirror = mirrors.get(sessionId);
    if (mirror === undefined) return;
    await mirror.keep((messages) => messages.waited.returned(claim));
    // The transcript may show meanwhile that the messages were displayed.
    const pending = messageIds.filter((messageId) => !mirror.wasDelivered(messageId));
    if (pending.length > 0) log('warn', `a wait of ${sessionId} did not show ${pending.length} message(s); retrying`);
    inbox.returned(pending);
    this.#changed(sessionId);
  }
}

interface WaitRegistryOptions {
  /** Called when listening starts or stops. */
  onChange: (sessionId: string) => void;
  /** Called when no wait confirmed its messages in time. */
  onReturned: (handoff: Handoff) => void;
}

/** Messages handed to a wait and not shown yet. */
interface Handoff {
  claim: string;
  sessionId: string;
  messageIds: readonly string[];
}

interface Listener {
  waitId: string;
  /** Null between two calls. */
  answer: ((answer: WaitResponse) => void) | null;
}

/** Longest time between two calls of a wait. */
const GAP_MS = 5_000;
/** Longest time between a handoff and its confirmation. */
const SHOWN_MS = 5_000;
const POLL_AGAIN: WaitResponse = { kind: 'again' };
const OTHER_WAIT: WaitResponse = { kind: 'over', reason: 'another wait already listens for this session' };

/**
 * Tracks agents that listen for messages while idle, each through a background command (`interlude wait`) whose exit
 * wakes the agent. A wait polls: a call without a message returns after a while and is repeated.
 *
 * Ordering: a handoff is stored before the wait gets it.
 * Failure: a wait confirms that it has shown its messages; without confirmation, the messages are pending again. If a
 * wait dies in between, the message is sent again and marked as possibly repeated.
 */
class WaitRegistry {
  readonly #options: WaitRegistryOptions;
  readonly #listeners = new Map<string, Listener>();
  readonly #handoff = new Map<string, Handoff & { timer: NodeJS.Timeout }>();
  #isClosed = false;

  constructor(options: WaitRegistryOptions) {
    this.#options = options;
  }

  isListening(sessionId: string): boolean {
    return this.#listeners.has(sessionId);
  }

  listen(sessionId: string, { waitId, withinMs, signal }: Omit<WaitCall, 'pids'>): Promise<WaitResponse> {
    if (this.#isClosed) return new Promise((resolve) => signal.addEventListener('abort', () => resolve(POLL_AGAIN)));
    const known = this.#listeners.get(sessionId);
    if (known !== undefined && known.waitId !== waitId) return Promise.resolve(OTHER_WAIT);
    known?.answer?.(POLL_AGAIN);
    return new Promise((resolve) => {
      const listener: Listener = { waitId, answer: null };
      const forget = () => this.#forget(sessionId, listener);
      const onAbort = () => {
        clearTimeout(timer);
        listener.answer = null;
        forget();
        resolve(POLL_AGAIN);
      };
      const timer = setTimeout(() => listener.answer?.(POLL_AGAIN), withinMs);
      listener.answer = (answer) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        listener.answer = null;
        if (answer.kind === 'again') setTimeout(forget, GAP_MS).unref();
        else forget();
        resolve(answer);
      };
      signal.addEventListener('abort', onAbort);
      this.#listeners.set(sessionId, listener);
      this.#options.onChange(sessionId);
    });
  }

  /**
   * Hands messages to the listening wait.
   * @param store stores the handoff before the wait gets it
   * @returns true if an agent listened
   */
  async hand(
    sessionId: string,
    messageIds: readonly string[],
    text: string,
    store: (handoff: Handoff) => Promise<void>,
  ): Promise<boolean> {
    const listener = this.#listeners.get(sessionId);
    const answer = listener?.answer;
    if (!listener || !answer) return false;
    listener.answer = null;
    const handoff: Handoff = { claim: randomUUID(), sessionId, messageIds };
    await store(handoff);
    this.expect(handoff);
    answer({ kind: 'message', claim: handoff.claim, text });
    return true;
  }

  /** Expects the confirmation of a handoff, possibly by the previous process. */
  expect(handoff: Handoff): void {
    const timer = setTimeout(() => {
      if (this.confirm(handoff.claim) !== null) this.#options.onReturned(handoff);
    }, SHOWN_MS);
    this.#handoff.set(handoff.claim, { ...handoff, timer });
  }

  /** @returns the handoff; null if it is unknown or was returned */
  confirm(claim: string): Handoff | null {
    const handoff = this.#handoff.get(claim);
    if (handoff === undefined) return null;
    clearTimeout(handoff.timer);
    this.#handoff.delete(claim);
    const { sessionId, messageIds } = handoff;
    return { claim, sessionId, messageIds };
  }

  /** Ends the wait of a session. */
  end(sessionId: string, reason: string): void {
    const listener = this.#listeners.get(sessionId);
    if (listener?.answer) listener.answer({ kind: 'over', reason });
    else if (listener !== undefined) this.#forget(sessionId, listener);
  }

  /** Stops listening. The waits lose the control port, and retry with the next companion. */
  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#handoff.values()) clearTimeout(timer);
    this.#listeners.clear();
  }

  /** Forgets the listener, unless its wait has called again. */
  #forget(sessionId: string, listener: Listener): void {
    if (this.#listeners.get(sessionId) !== listener || listener.answer !== null) return;
    this.#listeners.delete(sessionId);
    this.#options.onChange(sessionId);
  }
}
