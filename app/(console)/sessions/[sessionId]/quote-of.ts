import type { MessageItem, Turn } from '@interlude/protocol/read-models';
import { quote } from '@/components/transcript/reply-link';

/** A turn that did not change keeps its identity, and each of its messages may be quoted by thousands. */
const messages = new WeakMap<Turn, ReadonlyMap<string, MessageItem>>();

function messagesOf(turn: Turn): ReadonlyMap<string, MessageItem> {
  const known = messages.get(turn);
  if (known !== undefined) return known;
  const found = new Map<string, MessageItem>();
  for (const item of turn.items) if (item.kind === 'message' && !found.has(item.id)) found.set(item.id, item);
  messages.set(turn, found);
  return found;
}

/** The beginning of a message, where it is loaded. */
export function quoteOf(turns: readonly Turn[], messageId: string): string | null {
  for (let at = turns.length - 1; at >= 0; at--) {
    const found = messagesOf(turns[at] as Turn).get(messageId);
    if (found !== undefined) return quote(found);
  }
  return null;
}
