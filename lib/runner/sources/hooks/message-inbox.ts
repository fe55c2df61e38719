import type { Command } from '@interlude/protocol/commands';
import { remember } from '../../adapters/remember';
import type { CommandOutcome } from '../../host/seen-commands';
import type { WaitingMessage } from './stop-decision';

/** The server calls a refused message owed no longer once it knows: none need be remembered for longer than that. */
const MOST_REFUSED = 1_000;

type MessageCommand = Extract<Command, { type: 'message' }>;

/**
 * Messages from the dashboard for agents in a terminal. Nothing can be typed into somebody's terminal; but the
 * agent can be held when its turn ends, and be given the message then. So a message waits for the end of the running turn.
 * Where none runs it is for the agent's wait, if one listens, and is refused otherwise: an idle terminal would keep it for
 * hours without a word.
 */
export class MessageInbox {
  /** Reported as failed: they are no longer owed, whatever the last answer of the server still says. */
  readonly #refused = new Map<string, true>();
  readonly #waiting = new Map<string, { command: MessageCommand; settle: (outcome: CommandOutcome) => void }>();
  /** Given back by who was to hand them over: nobody knows whether the agent has them. */
  readonly #doubtful = new Map<string, true>();

  /** @returns once the agent has it, or will not get it */
  put(command: MessageCommand): Promise<CommandOutcome> {
    return new Promise((settle) => this.#waiting.set(command.body.messageId, { command, settle }));
  }

  /** Oldest first. */
  waitingFor(sessionId: string): WaitingMessage[] {
    return [...this.#waiting.values()]
      .filter(({ command }) => command.sessionId === sessionId)
      .map(({ command: { body, createdAt } }) => ({
        messageId: body.messageId,
        from: body.from,
        text: body.text,
        sentAt: createdAt,
        unseen: true,
        again: this.#doubtful.has(body.messageId),
      }));
  }

  /** They were on their way, and it is not known whether they arrived. */
  givenBack(messageIds: readonly string[]): void {
    for (const id of messageIds) setBounded(this.#doubtful, id, true, MOST_REFUSED);
  }

  handedOver(messageIds: readonly string[]): void {
    for (const id of messageIds) this.#settle(id, { state: 'delivered' });
  }

  wasRefused(messageId: string): boolean {
    return this.#refused.has(messageId);
  }

  /** A message that can't be taken at all. */
  turnAway(messageId: string, reason: string): CommandOutcome {
    setBounded(this.#refused, messageId, true, MOST_REFUSED);
    return { state: 'failed', reason };
  }

  /**
   * The session's turn is over and no stop hook took them.
   *
   * @param isInHand one took it, of a later turn
   * @returns how many were refused
   */
  refuse(sessionId: string, reason: string, isInHand = (_messageId: string) => false): number {
    const refused = [...this.#waiting].filter(([id, { command }]) => command.sessionId === sessionId && !isInHand(id));
    for (const [id] of refused) this.#settle(id, this.turnAway(id, reason));
    return refused.length;
  }

  #settle(messageId: string, outcome: CommandOutcome): void {
    const waiting = this.#waiting.get(messageId);
    this.#waiting.delete(messageId);
    waiting?.settle(outcome);
  }
}
