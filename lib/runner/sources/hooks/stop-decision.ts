import { truncateText } from '@interlude/protocol/text';
import type { OwedReply } from '../../host/owed-replies';

/**
 * Whether the agent may end its turn. It may, unless somebody waits for a reply from it; and it is never held twice in a
 * row, so that an agent that does not answer is not kept for ever.
 */
export interface WaitingMessage extends Omit<OwedReply, 'sessionId'> {
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
  if (owed.length === 0) return offer === null ? null : offered(offer);
  const { text, messageIds } = askedFor(owed);
  const reason = offer === null ? text : `${text}\n\n${offer}`;
  return { output: JSON.stringify({ decision: 'block', reason }), reason, messageIds };
}

/** Not a block: the terminal shows it as something a hook says. */
function offered(additionalContext: string): StopDecision {
  const hookSpecificOutput = { hookEventName: 'Stop', additionalContext };
  return { output: JSON.stringify({ hookSpecificOutput }), reason: additionalContext, messageIds: [] };
}

/** What an agent is told of messages that wait for it. */
export function askedFor(owed: readonly WaitingMessage[]): { text: string; messageIds: string[] } {
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
  return `From ${who}, ${when} UTC: ${line.length > LONGEST_LINE ? `${truncateText(line, LONGEST_LINE)}…` : line}`;
}
