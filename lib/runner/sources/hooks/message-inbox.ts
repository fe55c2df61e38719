import type { Command } from '@interlude/protocol/commands';
import { cutText } from '@interlude/protocol/cut-text';
import { remember } from '../../adapters/remember';
import type { CommandOutcome } from '../../commands/seen-commands';
import type { PendingReply } from '../../host/pending-replies';
import { failed } from '../../host/source-commands';

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
    for (const id of messageIds) remember(this.#doubtful, id, true, MOST_REFUSED);
  }

  handedOver(messageIds: readonly string[]): void {
    for (const id of messageIds) this.#settle(id, { state: 'delivered' });
  }

  wasRefused(messageId: string): boolean {
    return this.#refused.has(messageId);
  }

  /** A message that can't be taken at all. */
  turnAway(messageId: string, reason: string): CommandOutcome {
    remember(this.#refused, messageId, true, MOST_REFUSED);
    return failed(reason);
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

/**
 * Whether the agent may end its turn. It may, unless somebody waits for a reply from it; and it is never held twice in a
 * row, so that an agent that does not answer is not kept for ever.
 */
interface WaitingMessage extends Omit<PendingReply, 'sessionId'> {
  /** The agent has not seen the message: it is shown whole. Else its first line reminds of it. */
  unseen: boolean;
  /** It was on its way to the agent before, and may have got there. */
  again?: boolean;
}

export interface StopDecision {
  /** What the hook prints. */
  output: string;
  /** What the agent is told by it. */
  reason: string;
  messageIds: string[];
}

/** More at once would bury the agent; the others wait for its next turn's end. */
const MOST_AT_ONCE = 10;
const LONGEST_LINE = 300;

/**
 * @param offer what else it is told where it is held anyway, or once by itself
 * @returns null when the agent may rest
 */
export function stopDecision(
  owed: readonly WaitingMessage[],
  stopHookActive: boolean,
  offer: string | null = null,
): StopDecision | null {
  if (stopHookActive) return null;
  if (owed.length === 0) return offer === null ? null : offerDecision(offer);
  const { text, messageIds } = pendingReplyPrompt(owed);
  const reason = offer === null ? text : `${text}\n\n${offer}`;
  return { output: JSON.stringify({ decision: 'block', reason }), reason, messageIds };
}

/** Not a block: the terminal shows it as something a hook says. */
function offerDecision(additionalContext: string): StopDecision {
  const hookSpecificOutput = { hookEventName: 'Stop', additionalContext };
  return { output: JSON.stringify({ hookSpecificOutput }), reason: additionalContext, messageIds: [] };
}

/** What an agent is told of messages that wait for it. */
export function pendingReplyPrompt(owed: readonly WaitingMessage[]): { text: string; messageIds: string[] } {
  const asked = [...owed].sort((a, b) => a.sentAt - b.sentAt).slice(0, MOST_AT_ONCE);
  const text = [
    asked.length === 1 ? 'Someone waits for a reply from you:' : `${asked.length} messages wait for a reply from you:`,
    ...asked.map(item),
    ...(owed.length > asked.length ? [`(${owed.length - asked.length} more follow later.)`] : []),
    'Reply in your next message, in plain text: it is shown to them as your answer. Say so in one sentence when no answer is needed.',
  ].join('\n\n');
  return { text, messageIds: asked.map(({ messageId }) => messageId) };
}

function item({ from, sentAt, text, unseen, again = false }: WaitingMessage): string {
  const when = new Date(sentAt).toISOString().slice(0, 16).replace('T', ' ');
  const who = from.kind === 'agent' ? `the agent ${from.id}` : from.id;
  const maybe = again ? ' (it may have reached you before)' : '';
  if (unseen) return `A message from the dashboard, by ${who}, ${when} UTC${maybe}:\n${text}`;
  const line = text.trim().split('\n')[0] ?? '';
  return `From ${who}, ${when} UTC: ${line.length > LONGEST_LINE ? `${cutText(line, LONGEST_LINE)}…` : line}`;
}
