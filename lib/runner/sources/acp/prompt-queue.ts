import { setTimeout as pause } from 'node:timers/promises';
import { isSessionLost } from '../../adapters/acp/rpc';
import type { CommandOutcome } from '../../commands/seen-commands';
import type { InFlightMessage, InFlightMessages } from '../../host/message-delivery';
import { failed } from '../../host/source-commands';
import { GONE, type RpcAnswer } from './acp-connection';
import { isReplayed, type ReplayedMessage } from './prompts';

/**
 * The messages of people on their way to the agent. ACP knows one prompt at a time; an agent that says otherwise is given
 * each at once.
 *
 * Ordering: prompted in the order in which they were said.
 * Failure: a message is stored before it is prompted, and let go when a turn that names it has ended. One that an agent
 * had when it died, and that no turn has named, is prompted again, unless the agent's own past has it.
 */
export interface PromptQueueOptions {
  inHand: InFlightMessages;
  /** Written at once; resolves with the answer. */
  prompt(message: InFlightMessage): Promise<RpcAnswer>;
  /** Said to have been delivered, it will never be answered. */
  gaveBack(messageId: string, reason: string): void;
}

interface Waiting {
  message: InFlightMessage;
  /** It was prompted before, or may have been. */
  again: boolean;
  /** Who waits to hear that it was prompted. */
  taken: ((outcome: CommandOutcome) => void) | null;
}

export class PromptQueue {
  readonly #options: PromptQueueOptions;
  #waiting: Waiting[];
  /** Prompted, and not answered. */
  readonly #prompted = new Set<string>();
  #takesAtOnce = false;
  /** What was cancelled unread is given again once nothing runs: before that it would be cancelled again. */
  #untilIdle = false;
  #isReady = false;
  #replayed: readonly ReplayedMessage[] = [];
  #closedFor: string | null = null;

  constructor(options: PromptQueueOptions) {
    this.#options = options;
    this.#waiting = options.inHand.all.map((message) => ({ message, again: true, taken: null }));
  }

  /** Messages that no turn has answered. */
  get pending(): number {
    return this.#options.inHand.all.length;
  }

  /** Messages that the agent has not been given. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves once the agent's input has it. @param again it was begun by a process that was killed */
  async say(message: InFlightMessage, again: boolean): Promise<CommandOutcome> {
    const { inHand } = this.#options;
    if (this.#closedFor !== null) return failed(this.#closedFor);
    // It was prompted, or is, as soon as the agent can be: its turn comes by itself.
    if (inHand.has(message.messageId)) return { state: 'delivered' };
    const noted = inHand.put(message);
    const taken = new Promise<CommandOutcome>((resolve) => {
      this.#waiting.push({ message, again, taken: resolve });
    });
    await noted;
    if (again) this.#letGoKnown();
    this.#pump();
    return await taken;
  }

  /**
   * The agent can be prompted.
   * @param replayed what people wrote, by the agent's own account; empty where it gives none
   */
  ready(takesAtOnce: boolean, replayed: readonly ReplayedMessage[]): void {
    this.#takesAtOnce = takesAtOnce;
    this.#replayed = replayed;
    this.#isReady = true;
    this.#letGoKnown();
    this.#pump();
  }

  /** The process is gone: what it had been given and no turn has named waits again, before what had not been given. */
  stopped(): void {
    this.#isReady = false;
    this.#untilIdle = false;
    this.#prompted.clear();
    const known = new Set(this.#waiting.map(({ message }) => message.messageId));
    const given = this.#options.inHand.all.filter(({ messageId }) => !known.has(messageId));
    this.#waiting.unshift(...given.map((message) => ({ message, again: true, taken: null })));
  }

  /** What the agent did not take, though a turn that names it has failed, goes first. */
  giveAgain(messages: readonly InFlightMessage[]): void {
    const left = messages.filter(({ messageId }) => !this.#options.inHand.has(messageId));
    for (const message of left) void this.#options.inHand.put(message);
    this.#waiting.unshift(...left.map((message) => ({ message, again: true, taken: null })));
  }

  /** A turn that names them has ended. */
  answered(messageIds: readonly string[]): void {
    this.#options.inHand.remove(messageIds);
    this.#waiting = this.#waiting.filter(({ message }) => !messageIds.includes(message.messageId));
  }

  /** Nothing is prompted any more: what was not given never will be. */
  close(reason: string): void {
    this.#closedFor = reason;
    const left = this.#waiting;
    this.answered(this.#options.inHand.all.map(({ messageId }) => messageId));
    for (const { message, taken } of left) {
      if (taken === null) this.#options.gaveBack(message.messageId, reason);
      else taken({ state: 'failed', reason });
    }
  }

  #pump(): void {
    if (this.#prompted.size === 0) this.#untilIdle = false;
    const takesMore = () => this.#prompted.size === 0 || (this.#takesAtOnce && !this.#untilIdle);
    while (this.#isReady && takesMore()) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      const { message, taken } = next;
      this.#prompted.add(message.messageId);
      void this.#options.prompt(message).then((answer) => this.#promptAnswered(message, answer));
      taken?.({ state: 'delivered' });
    }
  }

  #promptAnswered(message: InFlightMessage, { result, error }: RpcAnswer): void {
    if (error?.isGone === true) return;
    this.#prompted.delete(message.messageId);
    if (error !== null && this.#options.inHand.has(message.messageId)) {
      this.answered([message.messageId]);
      this.#options.gaveBack(message.messageId, `the agent did not take it: ${error.message}`);
    }
    // Cancelled unread with the turn before it: the interrupt was meant for that turn.
    if (error === null && result.stopReason === 'cancelled' && this.#options.inHand.has(message.messageId)) {
      this.#untilIdle = true;
      this.#waiting.push({ message, again: false, taken: null });
      const order = this.#options.inHand.all.map(({ messageId }) => messageId);
      this.#waiting.sort((a, b) => order.indexOf(a.message.messageId) - order.indexOf(b.message.messageId));
    }
    this.#pump();
  }

  /** Of what may have been given before, that which the agent has: the newest that people wrote, each for one message. */
  #letGoKnown(): void {
    const doubtful = this.#waiting.filter(({ again }) => again);
    const newest = this.#replayed.slice(-doubtful.length || undefined);
    const known = doubtful.filter(({ message }) => {
      const at = newest.findIndex((past) => isReplayed(message, past));
      if (at >= 0) newest.splice(at, 1);
      return at >= 0;
    });
    this.answered(known.map(({ message }) => message.messageId));
    for (const { taken } of known) taken?.({ state: 'delivered' });
  }
}

export interface SessionRecoveryOptions {
  /** The agent's own id of the session. */
  nativeId(): string | null;
  /** Prompts the agent with a message. */
  give(message: InFlightMessage): Promise<RpcAnswer>;
  /** Whether no turn has taken the message up. */
  isUntaken(message: InFlightMessage): boolean;
  /** Has the agent load the session again. @returns why that failed, or null */
  reload(): Promise<RpcAnswer['error']>;
  /** Ends the agent's process, which is started again. */
  restart(): Promise<void>;
  /** How long the agent may take to load it. */
  patienceMs: number;
}

/**
 * A session that its agent has lost while its process lives, as when an adapter's inner agent has died: every prompt is
 * refused. It is loaded again; where that fails or does not help, the agent is restarted; where that does not help either,
 * the agent is given up.
 *
 * Ordering: what is given meanwhile waits until it is loaded, and goes in its order.
 * Failure: a message that no turn has taken up is given again.
 */
export class SessionRecovery {
  readonly #options: SessionRecoveryOptions;
  #loading: Promise<RpcAnswer['error']> | null = null;
  /** Set while the process is being ended for it. */
  #ended: { cause: string; untaken: InFlightMessage[] } | null = null;
  /** The agent was restarted for it, and has taken no prompt since. */
  #isLastTry = false;

  constructor(options: SessionRecoveryOptions) {
    this.#options = options;
  }

  async prompt(message: InFlightMessage): Promise<RpcAnswer> {
    const { give, isUntaken, restart, nativeId } = this.#options;
    for (let hasLoaded = false; ; hasLoaded = true) {
      // Else it is written at once.
      if (this.#loading !== null) await this.#loading;
      const answer = await give(message);
      const { error } = answer;
      if (error === null) this.#isLastTry = false;
      if (error === null || !isSessionLost(error, nativeId())) return answer;
      const failed = hasLoaded ? error : await this.#load();
      if (failed?.isGone === true) return GONE;
      if (failed !== null) {
        this.#ended ??= { cause: failed.message, untaken: [] };
        if (isUntaken(message)) this.#ended.untaken.push(message);
        await restart();
        return GONE;
      }
      if (!isUntaken(message)) return answer;
    }
  }

  /**
   * The process has gone.
   *
   * @returns for a process that was ended for a lost session: why, what it was given in vain, and `hopeless`, why there is
   *   no use in another; null if it went by itself
   */
  exited(): { why: string; untaken: readonly InFlightMessage[]; hopeless: string | null } | null {
    const ended = this.#ended;
    this.#ended = null;
    if (ended === null) return null;
    const { cause, untaken } = ended;
    const hopeless = `the agent has lost its session, and neither loading it again nor a restart helped: ${cause}`;
    const isLastTry = this.#isLastTry;
    this.#isLastTry = true;
    return { why: `it had lost its session: ${cause}`, untaken, hopeless: isLastTry ? hopeless : null };
  }

  #load(): Promise<RpcAnswer['error']> {
    const { reload, patienceMs } = this.#options;
    const tooLate = { code: null, message: `it was not loaded again within ${patienceMs / 1000} s` };
    const late = () => pause(patienceMs, tooLate, { ref: false });
    this.#loading ??= Promise.race([reload(), late()]).finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }
}
