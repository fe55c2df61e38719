import { Entities, type Kind } from '@interlude/protocol/lifecycle/grammar';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import type { Item, Turn } from '@interlude/protocol/read-models';
import { digestOf } from '@interlude/protocol/request-digest';

/** The parts that become messages in the client's list. */
export type PartKind = 'text' | 'thought' | 'call';

/** Progress of a part at the client and in the log, in UTF-16 code units. */
export interface Part {
  clientLength: number;
  /** Less than `clientLength` while the log repeats text that the client already has. */
  logLength: number;
  /** The subagent that began the part, null for the agent itself; absent until the part is written. */
  owner?: string | null;
  /** The speaker that streams the part in chunks, which no event ends. */
  chunkedBy?: string | null;
}

/** Limits per kind. Beyond them the oldest open part is closed, and the oldest ended one is forgotten. */
const MOST = { mostOpen: 1_000, mostEnded: 5_000 };

/**
 * The parts that a client has, from the messages it sent and the events it received. Compares lengths instead of texts,
 * because a text in the log only grows. A client closes a call when its arguments end, and the result is a separate
 * message. So the end of a call is its `cut`: afterwards only a result changes the call.
 */
export class ClientParts {
  readonly of: Readonly<Record<PartKind, Entities<PartKind, Part>>> = {
    text: new Entities<PartKind, Part>('text', MOST),
    thought: new Entities<PartKind, Part>('thought', MOST),
    call: new Entities<PartKind, Part>('call', MOST),
  };

  /**
   * @param logLength 0 if the log is read from the start of the part, else the part's length at the position where the
   * read starts
   * @param owner null if the client has the part as the agent's own
   */
  add(kind: PartKind, id: string, clientLength: number, logLength: number, owner?: null): void {
    this.of[kind].take(id, 'start', { clientLength, logLength, owner });
    this.of[kind].take(id, 'cut');
  }

  addResult(toolCallId: string): void {
    const calls = this.of.call;
    calls.take(toolCallId, 'start', calls.about(toolCallId) ?? { clientLength: 0, logLength: 0 });
    calls.take(toolCallId, 'result');
  }

  isAnswered(toolCallId: string): boolean {
    return this.of.call.verdict(toolCallId, 'result') === 'repeats';
  }

  hasId(id: string): boolean {
    return Object.values(this.of).some((parts) => parts.about(id) !== undefined);
  }

  /** Open parts by kind, oldest first. */
  open(): { kind: PartKind; id: string; part: Part }[] {
    const kinds = ['text', 'thought', 'call'] as const;
    return kinds.flatMap((kind) => this.of[kind].entries().map(([id, part]) => ({ kind, id, part })));
  }
}

export function isOfPart<Input extends { kind: Kind | null }>(
  input: Input,
): input is Extract<Input, { kind: PartKind }> {
  return input.kind === 'text' || input.kind === 'thought' || input.kind === 'call';
}

const PREFIX = 'agui:';

/** The session's `clientId` of an AG-UI message. A resent message gets the same id, so the session receives it once. */
export function clientIdOf(messageId: string): string {
  const id = `${PREFIX}${messageId}`;
  return id.length <= MAX_ID_LENGTH ? id : `${PREFIX}#${digestOf(messageId)}`;
}

/** The AG-UI client's id of a message; null if no AG-UI client sent it. */
export function messageIdOf(clientId: string | null | undefined): string | null {
  return clientId?.startsWith(PREFIX) && !clientId.startsWith(`${PREFIX}#`) ? clientId.slice(PREFIX.length) : null;
}

/** Limits for a history. Clients accept 10 MB in one frame. */
export const HISTORY_TURNS = 50;
const MAX_TEXT = 2 * 1024 * 1024;
const MAX_ITEMS = 5_000;

type Message = { id: string; role: string; [field: string]: unknown };

/** As many of a session's newest messages as fit, in the form of a client's list. Adds them to `parts`. */
export function historyOf(turns: readonly Turn[], parts: ClientParts): Message[] {
  const newestFirst: Message[][] = [];
  let room = MAX_TEXT;
  for (const item of turns.flatMap(({ items }) => items).reverse()) {
    const messages = messagesOf(item);
    room -= JSON.stringify(messages).length;
    // Keeps the newest message, regardless of its size.
    if (newestFirst.length > 0 && (room < 0 || newestFirst.length >= MAX_ITEMS)) break;
    newestFirst.push(messages);
    addItem(item, parts);
  }
  return withUniqueIds(newestFirst.reverse().flat());
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

/** Truncated text counts as received, because the log continues after it. */
function addItem(item: Item, parts: ClientParts): void {
  const add = (kind: PartKind, id: string, text: string, cut = 0) => {
    parts.add(kind, id, text.length + cut, text.length + cut, null);
  };
  if (item.kind === 'message') add('text', messageIdOf(item.clientId) ?? item.id, item.text, item.cut);
  else if (item.kind === 'reasoning') add('thought', item.id, item.text, item.cut);
  else if (item.kind === 'tool-call') {
    add('call', item.id, item.argsText, item.cut);
    if (item.result !== null) parts.addResult(item.id);
  }
}

/** A message and a call of the agent may share an id. For a client both are messages, which need distinct ids. */
function withUniqueIds(messages: readonly Message[]): Message[] {
  const seen = new Set<string>();
  return messages.map((message) => {
    let { id } = message;
    while (seen.has(id)) id = `${id}:${message.role}`;
    seen.add(id);
    return { ...message, id };
  });
}
