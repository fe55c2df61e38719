import type { Item, Turn } from '@interlude/protocol/read-models';
import type { ClientParts } from './client-parts';
import { messageIdOf } from './run-input';

/** Most turns of which a history is made, and how much of it, as JSON: a client takes 10 MB in one frame. */
export const HISTORY_TURNS = 50;
const MOST_TEXT = 2 * 1024 * 1024;
const MOST_ITEMS = 5_000;

type Message = { id: string; role: string; [field: string]: unknown };

/**
 * What was said and done, as a client's list of messages: the newest that fit, from the beginning of a message. What it
 * has by then is said to `parts`.
 */
export function historyOf(turns: readonly Turn[], parts: ClientParts): Message[] {
  const newestFirst: Message[][] = [];
  let room = MOST_TEXT;
  for (const item of turns.flatMap(({ items }) => items).reverse()) {
    const told = messagesOf(item);
    room -= JSON.stringify(told).length;
    // The newest is kept whatever its size.
    if (newestFirst.length > 0 && (room < 0 || newestFirst.length >= MOST_ITEMS)) break;
    newestFirst.push(told);
    know(item, parts);
  }
  return unique(newestFirst.reverse().flat());
}

function messagesOf(item: Item): Message[] {
  switch (item.kind) {
    case 'message': {
      const name = item.name === null ? {} : { name: item.name };
      return [{ id: messageIdOf(item.clientId) ?? item.id, role: item.role, content: item.text, ...name }];
    }
    case 'reasoning':
      return [{ id: item.id, role: 'reasoning', content: item.text }];
    case 'tool-call': {
      const call = { id: item.id, type: 'function', function: { name: item.name, arguments: item.argsText } };
      const called = { id: item.id, role: 'assistant', toolCalls: [call] };
      if (item.result === null) return [called];
      return [called, { id: `${item.id}:result`, role: 'tool', toolCallId: item.id, content: item.result }];
    }
    default:
      return [];
  }
}

/** A log that goes on from here goes on with what the client has; what is cut off of it counts as had. */
function know(item: Item, parts: ClientParts): void {
  if (item.kind === 'message') {
    const length = item.text.length + (item.cut ?? 0);
    parts.know('text', messageIdOf(item.clientId) ?? item.id, length, length, null);
  } else if (item.kind === 'reasoning') {
    const length = item.text.length + (item.cut ?? 0);
    parts.know('thought', item.id, length, length, null);
  } else if (item.kind === 'tool-call') {
    const length = item.argsText.length + (item.cut ?? 0);
    parts.know('call', item.id, length, length, null);
    if (item.result !== null) parts.knowResult(item.id);
  }
}

/** An agent may use the id of a message for a call; to a client each is one message. */
function unique(messages: readonly Message[]): Message[] {
  const seen = new Set<string>();
  return messages.map((message) => {
    let { id } = message;
    while (seen.has(id)) id = `${id}:${message.role}`;
    seen.add(id);
    return { ...message, id };
  });
}
