import { setTimeout as pause } from 'node:timers/promises';
import { isSessionLost } from '../../adapters/acp/rpc';
import type { InFlightMessage, InFlightMessages } from '../../host/message-delivery';
import type { CommandOutcome } from '../../host/seen-commands';
import { failed } from '../../host/source-commands';
import { GONE, type RpcResponse } from './acp-connection';
import { isReplayed, type ReplayedMessage } from './prompts';

export interface PromptQueueOptions {
  inFlight: InFlightMessages;
  /** Writes immediately; resolves with the response. */
  prompt(message: InFlightMessage): Promise<RpcResponse>;
  /** Called for a delivered message that will never be answered. */
  failedAfterDelivery(messageId: string, reason: string): void;
}

interface Waiting {
  message: InFlightMessage;
  /** True if the message may have been prompted before. */
  again: boolean;
  /** Resolves the delivery command. */
  settle: ((outcome: CommandOutcome) => void) | null;
}

/**
 * Queues messages for the agent. ACP allows one prompt at a time; agents that support more get each message at once.
 *
 * Ordering: prompted in the order received.
 * Failure: a message is stored before it is prompted, and removed when a turn that names it has ended. A message the
 * agent had when it died is prompted again, unless a turn or the replay has it.
 */
export class PromptQueue {
  readonly #options: PromptQueueOptions;
  #waiting: Waiting[];
  /** Prompted messages without a response. */
  readonly #prompted = new Set<string>();
  #acceptsParallel = false;
  /**
   * Messages cancelled before the agent read them are prompted again once it is idle. Until then, the agent would
   * cancel them again.
   */
  #untilIdle = false;
  #isReady = false;
  #replayed: readonly ReplayedMessage[] = [];
  #closedFor: string | null = null;

  constructor(options: PromptQueueOptions) {
    this.#options = options;
    this.#waiting = options.inFlight.all.map((message) => ({ message, again: true, settle: null }));
  }

  /** Number of unanswered messages. */
  get pending(): number {
    return this.#options.inFlight.all.length;
  }

  /** Number of messages not yet prompted. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves once prompted. @param again true if an earlier attempt was interrupted */
  async add(message: InFlightMessage, again: boolean): Promise<CommandOutcome> {
    const { inFlight } = this.#options;
    if (this.#closedFor !== null) return failed(this.#closedFor);
    // The message is in the queue or already prompted.
    if (inFlight.has(message.messageId)) return { state: 'delivered' };
    const stored = inFlight.put(message);
    const delivered = new Promise<CommandOutcome>((resolve) => {
      this.#waiting.push({ message, again, settle: resolve });
    });
    await stored;
    if (again) this.#removeReplayed();
    this.#pump();
    return await delivered;
  }

  /**
   * Starts prompting, because the agent is ready.
   * @param replayed user messages from the replay; empty without one
   */
  ready(acceptsParallel: boolean, replayed: readonly ReplayedMessage[]): void {
    this.#acceptsParallel = acceptsParallel;
    this.#replayed = replayed;
    this.#isReady = true;
    this.#removeReplayed();
    this.#pump();
  }

  /** Requeues the unanswered messages of an exited process, before the ones not yet prompted. */
  stopped(): void {
    this.#isReady = false;
    this.#untilIdle = false;
    this.#prompted.clear();
    const known = new Set(this.#waiting.map(({ message }) => message.messageId));
    const unanswered = this.#options.inFlight.all.filter(({ messageId }) => !known.has(messageId));
    this.#waiting.unshift(...unanswered.map((message) => ({ message, again: true, settle: null })));
  }

  /** Requeues, ahead of the others, messages that the agent did not process although a turn that named them failed. */
  requeueFirst(messages: readonly InFlightMessage[]): void {
    const remaining = messages.filter(({ messageId }) => !this.#options.inFlight.has(messageId));
    for (const message of remaining) void this.#options.inFlight.put(message);
    this.#waiting.unshift(...remaining.map((message) => ({ message, again: true, settle: null })));
  }

  answered(messageIds: readonly string[]): void {
    this.#options.inFlight.remove(messageIds);
    this.#waiting = this.#waiting.filter(({ message }) => !messageIds.includes(message.messageId));
  }

  /** Fails all messages not yet prompted. */
  close(reason: string): void {
    this.#closedFor = reason;
    const remaining = this.#waiting;
    this.answered(this.#options.inFlight.all.map(({ messageId }) => messageId));
    for (const { message, settle } of remaining) {
      if (settle === null) this.#options.failedAfterDelivery(message.messageId, reason);
      else settle({ state: 'failed', reason });
    }
  }

  #pump(): void {
    if (this.#prompted.size === 0) this.#untilIdle = false;
    const canPrompt = () => this.#prompted.size === 0 || (this.#acceptsParallel && !this.#untilIdle);
    while (this.#isReady && canPrompt()) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      const { message, settle } = next;
      this.#prompted.add(message.messageId);
      void this.#options.prompt(message).then((response) => this.#promptResponded(message, response));
      settle?.({ state: 'delivered' });
    }
  }

  #promptResponded(message: InFlightMessage, { result, error }: RpcResponse): void {
    if (error?.isGone === true) return;
    this.#prompted.delete(message.messageId);
    if (error !== null && this.#options.inFlight.has(message.messageId)) {
      this.answered([message.messageId]);
      this.#options.failedAfterDelivery(message.messageId, `the agent refused the message: ${error.message}`);
    }
    // The message was cancelled unread, along with the turn that the interrupt was meant for.
    if (error === null && result.stopReason === 'cancelled' && this.#options.inFlight.has(message.messageId)) {
      this.#untilIdle = true;
      this.#waiting.push({ message, again: false, settle: null });
      const order = this.#options.inFlight.all.map(({ messageId }) => messageId);
      this.#waiting.sort((a, b) => order.indexOf(a.message.messageId) - order.indexOf(b.message.messageId));
    }
    this.#pump();
  }

  /** Removes possibly repeated messages that the replay has; each replayed message matches one. */
  #removeReplayed(): void {
    const doubtful = this.#waiting.filter(({ again }) => again);
    const newest = this.#replayed.slice(-doubtful.length || undefined);
    const known = doubtful.filter(({ message }) => {
      const index = newest.findIndex((past) => isReplayed(message, past));
      if (index >= 0) newest.splice(index, 1);
      return index >= 0;
    });
    this.answered(known.map(({ message }) => message.messageId));
    for (const { settle } of known) settle?.({ state: 'delivered' });
  }
}

export interface SessionRecoveryOptions {
  nativeId(): string | null;
  send(message: InFlightMessage): Promise<RpcResponse>;
  /** True if no turn has processed the message. */
  isUnprocessed(message: InFlightMessage): boolean;
  /** Makes the agent load the session again. @returns the error, or null */
  reload(): Promise<RpcResponse['error']>;
  restart(): Promise<void>;
  patienceMs: number;
}

/**
 * Recovers a session that its agent lost while the process lives, for example because an inner agent died: every prompt
 * is refused. Reloads it, then restarts the agent, then gives up.
 *
 * Ordering: messages wait for the reload and keep their order.
 * Failure: a message that no turn has processed is prompted again.
 */
export class SessionRecovery {
  readonly #options: SessionRecoveryOptions;
  #loading: Promise<RpcResponse['error']> | null = null;
  /** Set while the process is being restarted to recover. */
  #ended: { cause: string; unprocessed: InFlightMessage[] } | null = null;
  /** True if the agent was restarted to recover and has accepted no prompt since. */
  #isLastTry = false;

  constructor(options: SessionRecoveryOptions) {
    this.#options = options;
  }

  async prompt(message: InFlightMessage): Promise<RpcResponse> {
    const { send, isUnprocessed, restart, nativeId } = this.#options;
    for (let hasLoaded = false; ; hasLoaded = true) {
      // Without a reload, the prompt is written immediately.
      if (this.#loading !== null) await this.#loading;
      const response = await send(message);
      const { error } = response;
      if (error === null) this.#isLastTry = false;
      if (error === null || !isSessionLost(error, nativeId())) return response;
      const failed = hasLoaded ? error : await this.#load();
      if (failed?.isGone === true) return GONE;
      if (failed !== null) {
        this.#ended ??= { cause: failed.message, unprocessed: [] };
        if (isUnprocessed(message)) this.#ended.unprocessed.push(message);
        await restart();
        return GONE;
      }
      if (!isUnprocessed(message)) return response;
    }
  }

  /**
   * Handles the exit of the process. Null if the exit was not a recovery.
   * @returns the cause, unprocessed messages and, if a restart is pointless, the `fatal` reason
   */
  exited(): { reason: string; unprocessed: readonly InFlightMessage[]; fatal: string | null } | null {
    const ended = this.#ended;
    this.#ended = null;
    if (ended === null) return null;
    const { cause, unprocessed } = ended;
    const fatal = `the agent lost its session, and neither a reload nor a restart helped: ${cause}`;
    const isLastTry = this.#isLastTry;
    this.#isLastTry = true;
    return { reason: `it lost its session: ${cause}`, unprocessed, fatal: isLastTry ? fatal : null };
  }

  #load(): Promise<RpcResponse['error']> {
    const { reload, patienceMs } = this.#options;
    const tooLate = { code: null, message: `the session was not reloaded within ${patienceMs / 1000} s` };
    const late = () => pause(patienceMs, tooLate, { ref: false });
    this.#loading ??= Promise.race([reload(), late()]).finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }
}
