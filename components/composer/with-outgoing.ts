import { noneTurn } from '@interlude/protocol/projections/placement';
import type { TranscriptState } from '@interlude/protocol/projections/transcript-state';
import type { MessageItem, Turn } from '@interlude/protocol/read-models';
import type { OutgoingMessage } from './draft-store';

/** The server's name for the signed-in user. */
const OPERATOR_NAME = 'operator';

/** True if the transcript shows a sent message, by `clientId` or `messageId`. */
export function isShown(turns: readonly Turn[], { clientId, messageId }: OutgoingMessage): boolean {
  for (let index = turns.length - 1; index >= 0; index--) {
    const found = turns[index]?.items.some(
      (item) => item.kind === 'message' && (item.clientId === clientId || item.id === messageId),
    );
    if (found) return true;
  }
  return false;
}

/**
 * The transcript with this browser's outgoing messages at the end, each outside any turn, as the server will place it. A
 * message that the transcript already shows is not repeated, whether the response or the event came first.
 */
export function withOutgoing(state: TranscriptState, messages: readonly OutgoingMessage[]): TranscriptState {
  const waiting = messages.filter((message) => !isShown(state.turns, message));
  if (waiting.length === 0) return state;
  return { ...state, turns: [...state.turns, ...waiting.map((message) => turnOf(message, state.position))] };
}

function turnOf({ clientId, text, replyTo, attachments, at }: OutgoingMessage, position: string): Turn {
  const item: MessageItem = {
    kind: 'message',
    id: clientId,
    position,
    at,
    role: 'user',
    name: OPERATOR_NAME,
    text,
    streaming: false,
    delivery: 'queued',
    deliveryReason: null,
    replyTo: replyTo === null ? [] : [replyTo],
    clientId,
    ...(attachments === undefined ? {} : { attachments: [...attachments] }),
  };
  return { ...noneTurn(`outgoing:${clientId}`, position, at), items: [item] };
}
