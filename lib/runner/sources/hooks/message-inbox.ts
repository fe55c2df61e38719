import type { Command } from '@interlude/protocol/commands';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../../adapters/wire';
import type { OpenObligation } from '../../host/obligations';
import type { CommandOutcome } from '../../host/seen-commands';
import { failed } from '../../host/source-commands';

/** Refused messages remembered until the server knows about them. */
const MOST_REFUSED = 1_000;

type MessageCommand = Extract<Command, { type: 'message' }>;

/**
 * Holds messages for terminal agents. Nothing can be typed into a terminal, but the stop hook can hand a message to the
 * agent at the end of its turn, so messages wait for the running turn. Without a running turn, messages go to a
 * listening wait or are refused, rather than wait unnoticed for hours.
 */
export class MessageInbox {
  /** Refused messages, which are no longer pending even if the server still lists them. */
  readonly #refused = new Map<string, true>();
  readonly #waiting = new Map<string, { command: MessageCommand; settle: (outcome: CommandOutcome) => void }>();
  /** Messages that a wait may or may not have shown to the agent. */
  readonly #uncertain = new Map<string, true>();

  /** Resolves once the agent has the message, or will never get it. */
  put(command: MessageCommand): Promise<CommandOutcome> {
    return new Promise((settle) => this.#waiting.set(command.body.messageId, { command, settle }));
  }

  waitingFor(sessionId: string): WaitingMessage[] {
    return [...this.#waiting.values()]
      .filter(({ command }) => command.sessionId === sessionId)
      .map(({ command: { body, createdAt } }) => ({
        messageId: body.messageId,
        from: body.from,
        text: body.text,
        sentAt: createdAt,
        unseen: true,
        again: this.#uncertain.has(body.messageId),
      }));
  }

  /** Marks messages whose delivery is unknown. */
  returned(messageIds: readonly string[]): void {
    for (const id of messageIds) setBounded(this.#uncertain, id, true, MOST_REFUSED);
  }

  delivered(messageIds: readonly string[]): void {
    for (const id of messageIds) this.#settle(id, { state: 'delivered' });
  }

  wasRefused(messageId: string): boolean {
    return this.#refused.has(messageId);
  }

  refuseOne(messageId: string, reason: string): CommandOutcome {
    setBounded(this.#refused, messageId, true, MOST_REFUSED);
    return failed(reason);
  }

  /**
   * Refuses the messages that no stop hook delivered.
   * @param isInFlight true if a later stop hook delivers the message
   * @returns the number of refused messages
   */
  refuse(sessionId: string, reason: string, isInFlight = (_messageId: string) => false): number {
    const refused = [...this.#waiting].filter(
      ([id, { command }]) => command.sessionId === sessionId && !isInFlight(id),
    );
    for (const [id] of refused) this.#settle(id, this.refuseOne(id, reason));
    return refused.length;
  }

  #settle(messageId: string, outcome: CommandOutcome): void {
    const waiting = this.#waiting.get(messageId);
    this.#waiting.delete(messageId);
    waiting?.settle(outcome);
  }
}

/**
 * A message for the stop hook, which holds the agent while a reply is pending, but never twice in a row: an agent that
 * does not answer must not be held forever.
 */
interface WaitingMessage extends Omit<OpenObligation, 'sessionId'> {
  /** True if the agent has not seen the message: it gets the full text instead of the first line. */
  unseen: boolean;
  /** True if the message may have reached the agent before. */
  again?: boolean;
}

export interface StopDecision {
  /** Output of the hook. */
  output: string;
  /** Text for the agent. */
  reason: string;
  messageIds: string[];
}

/** Messages per hold; others wait for the next turn. */
const MOST_AT_ONCE = 10;
const LONGEST_LINE = 300;

/**
 * @param offer hint about listening, added to a hold or sent alone
 * @returns null if the agent may stop
 */
export function stopDecision(
  obligations: readonly WaitingMessage[],
  stopHookActive: boolean,
  offer: string | null = null,
): StopDecision | null {
  if (stopHookActive) return null;
  if (obligations.length === 0) return offer === null ? null : offerDecision(offer);
  const { text, messageIds } = obligationPrompt(obligations);
  const reason = offer === null ? text : `${text}\n\n${offer}`;
  return { output: JSON.stringify({ decision: 'block', reason }), reason, messageIds };
}

/** Sends the hint as context rather than a block; the terminal shows it as hook output. */
function offerDecision(additionalContext: string): StopDecision {
  const hookSpecificOutput = { hookEventName: 'Stop', additionalContext };
  return { output: JSON.stringify({ hookSpecificOutput }), reason: additionalContext, messageIds: [] };
}

/** Prompt about pending messages. */
export function obligationPrompt(obligations: readonly WaitingMessage[]): { text: string; messageIds: string[] } {
  const shown = [...obligations].sort((a, b) => a.sentAt - b.sentAt).slice(0, MOST_AT_ONCE);
  const text = [
    shown.length === 1
      ? 'A message is waiting for your reply:'
      : `${shown.length} messages are waiting for your reply:`,
    ...shown.map(item),
    ...(obligations.length > shown.length ? [`(${obligations.length - shown.length} more will follow.)`] : []),
    'Reply in your next message, in plain text; it is shown to the sender as your answer. If no answer is needed, say so in one sentence.',
  ].join('\n\n');
  return { text, messageIds: shown.map(({ messageId }) => messageId) };
}

function item({ from, sentAt, text, unseen, again = false }: WaitingMessage): string {
  const when = new Date(sentAt).toISOString().slice(0, 16).replace('T', ' ');
  const sender = from.kind === 'agent' ? `the agent ${from.id}` : from.id;
  const maybe = again ? ' (it may have reached you before)' : '';
  if (unseen) return `Message from ${sender}, ${when} UTC${maybe}:\n${text}`;
  const line = text.trim().split('\n')[0] ?? '';
  return `From ${sender}, ${when} UTC: ${line.length > LONGEST_LINE ? `${truncateText(line, LONGEST_LINE)}…` : line}`;
}
