import type { WaitAnswer, WaitCall } from '../../host/control-port';
import { agentCommand } from '../../host/own-program.mjs';
import { type Handed, IdleWaits } from './idle-waits';
import type { MessageInbox } from './message-inbox';
import type { SessionMirror } from './session-mirror';
import { askedFor } from './stop-decision';
import type { WaitedMessage } from './waited-messages';

/**
 * What becomes of messages for terminals in which no turn runs: they are for the wait of the agent, if one listens, and
 * refused otherwise. What came while a turn ran is its stop hook's, unless that has passed it by.
 */
export interface IdleMessagesOptions {
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

export class IdleMessages {
  readonly #options: IdleMessagesOptions;
  readonly #waits = new IdleWaits({
    onChange: (sessionId) => this.#changed(sessionId),
    onGivenBack: (handed) => void this.#givenBack(handed),
  });

  constructor(options: IdleMessagesOptions) {
    this.#options = options;
  }

  isListening(sessionId: string): boolean {
    return this.#waits.isListening(sessionId);
  }

  /** What the companion before this one handed to waits, as it left it. */
  recall(sessionId: string, waited: readonly WaitedMessage[]): void {
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
    const { text, messageIds } = askedFor(waiting);
    const store = ({ claim }: Handed) => {
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
  async #givenBack({ claim, sessionId, messageIds }: Handed): Promise<void> {
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
