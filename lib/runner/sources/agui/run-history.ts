import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { QUESTION_TOOL } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { contentText } from '../../adapters/agui/agui-frames';
import type { EmittedEvent } from '../../adapters/wire';

export interface HistoryMessage {
  id: string;
  role: string;
  content?: unknown;
  toolCalls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[];
  toolCallId?: string;
}

/** UTF-16 units of JSON. */
const MAX_HISTORY = 512 * 1024;
/** Maximum length of each text. */
const MAX_TEXT = 128 * 1024;
const ROLES = new Set(['user', 'assistant', 'tool', 'system', 'developer']);

/**
 * The conversation in the form of `RunAgentInput.messages`, for servers that keep none. Built from the emitted events
 * and stored for the next process.
 *
 * Failure: above MAX_HISTORY the oldest messages are dropped, up to a user message. Tool calls without a result are
 * left out, since models refuse them.
 */
export class RunHistory {
  #messages: HistoryMessage[];

  constructor(stored: string | undefined) {
    this.#messages = listOf(parseJson(stored ?? '[]')).map(fieldsOf) as unknown as HistoryMessage[];
  }

  get isEmpty(): boolean {
    return this.#messages.length === 0;
  }

  /**
   * Returns the messages of a run that adds `incoming`.
   * @param answering tool calls that this run answers in another way
   */
  with(incoming: readonly HistoryMessage[], answering: readonly string[] = []): HistoryMessage[] {
    const results = [...this.#messages, ...incoming].flatMap(({ toolCallId }) => toolCallId ?? []);
    const answered = new Set([...results, ...answering]);
    const kept = this.#messages.flatMap((message) => {
      if (message.toolCalls === undefined) return [message];
      const toolCalls = message.toolCalls.filter(({ id }) => answered.has(id));
      const { toolCalls: _, ...plain } = message;
      if (toolCalls.length > 0) return [{ ...message, toolCalls }];
      return textOf(message.content) === null ? [] : [plain];
    });
    return [...kept, ...incoming];
  }

  /** Call id of a question without a result; the next message answers it. Null if none. */
  get question(): string | null {
    const last = this.#messages.at(-1);
    const answered = new Set(this.#messages.flatMap(({ toolCallId }) => toolCallId ?? []));
    const open = last?.toolCalls?.find((call) => call.function.name === QUESTION_TOOL && !answered.has(call.id));
    return open?.id ?? null;
  }

  add(messages: readonly HistoryMessage[]): void {
    for (const message of messages) this.#put(message);
  }

  /** Folds emitted events. */
  observe(events: readonly EmittedEvent[]): void {
    for (const { event } of events) if (event.subagentRunId === undefined) this.#fold(event);
  }

  toString(): string {
    this.#bound();
    return JSON.stringify(this.#messages);
  }

  #fold(event: AgUiEvent): void {
    const { type, delta, metadata } = event;
    const id = textOf(event.messageId);
    const call = textOf(event.toolCallId);
    const isWhole = metadata?.interlude?.whole === true;
    switch (type) {
      case 'TEXT_MESSAGE_START':
        if (id !== null) this.#put({ id, role: textOf(event.role) ?? 'assistant', content: '' });
        break;
      case 'TEXT_MESSAGE_CONTENT': {
        const message = this.#find(id);
        if (message !== undefined) message.content = appendText(message.content, delta, isWhole);
        break;
      }
      case 'TOOL_CALL_START':
        if (call !== null) this.#call(call, textOf(event.toolCallName) ?? 'tool', textOf(event.parentMessageId));
        break;
      case 'TOOL_CALL_ARGS': {
        const made = this.#calls().find((one) => one.id === call);
        if (made !== undefined) made.function.arguments = appendText(made.function.arguments, delta, isWhole);
        break;
      }
      case 'TOOL_CALL_RESULT':
        if (call !== null) {
          const content = appendText('', event.content, true);
          this.#put({ id: id ?? `${call}/result`, role: 'tool', toolCallId: call, content });
        }
        break;
      case 'MESSAGES_SNAPSHOT': {
        const messages = listOf(event.messages).map(fieldsOf);
        for (const isAlike of [hasSameText, sharesToolCall]) this.#rename(messages, isAlike);
        let last: string | null = null;
        for (const incoming of messages) last = this.#snapshot(incoming, last) ?? last;
      }
    }
  }

  /** Adopts the ids of the snapshot for messages streamed under other ids. */
  #rename(messages: readonly Fields[], isAlike: (known: HistoryMessage, incoming: Fields) => boolean): void {
    const named = new Set(messages.map(({ id }) => textOf(id)));
    for (const incoming of messages.toReversed()) {
      const id = textOf(incoming.id);
      if (id === null || incoming.role === 'tool' || this.#find(id) !== undefined) continue;
      const match = this.#messages.findLast(
        (known) => !named.has(known.id) && known.role === incoming.role && isAlike(known, incoming),
      );
      if (match !== undefined) match.id = id;
    }
  }

  /**
   * Merges a message of a snapshot; in Ambient's runner the snapshot covers one run only.
   * @param last the preceding message of the snapshot
   * @returns the id of the message; null if it is malformed
   */
  #snapshot(incoming: Fields, last: string | null): string | null {
    const { id, role, content, toolCalls, toolCallId } = incoming;
    const name = textOf(id);
    if (name === null || typeof role !== 'string' || !ROLES.has(role)) return null;
    const message = {
      id: name,
      role,
      ...(content === undefined || content === null ? {} : { content }),
      ...(Array.isArray(toolCalls) ? { toolCalls: toolCalls as HistoryMessage['toolCalls'] } : {}),
      ...(typeof toolCallId === 'string' ? { toolCallId } : {}),
    } as HistoryMessage;
    this.#put(message, last);
    return name;
  }

  /** @param last predecessor of a new message; null appends */
  #put(message: HistoryMessage, last: string | null = null): void {
    const isSame = (known: HistoryMessage) =>
      known.id === message.id || (message.toolCallId !== undefined && known.toolCallId === message.toolCallId);
    const index = this.#messages.findIndex(isSame);
    const after = last === null ? -1 : this.#messages.findLastIndex(({ id }) => id === last);
    if (index < 0) this.#messages.splice(after < 0 ? this.#messages.length : after + 1, 0, message);
    else if (message.content !== '') this.#messages[index] = message;
  }

  #call(id: string, name: string, parent: string | null): void {
    if (this.#calls().some((call) => call.id === id)) return;
    const call = { id, type: 'function' as const, function: { name, arguments: '' } };
    const last = this.#messages.at(-1);
    const home = this.#find(parent) ?? (last?.role === 'assistant' ? last : undefined);
    if (home === undefined) this.#messages.push({ id: `${id}/call`, role: 'assistant', toolCalls: [call] });
    else home.toolCalls = [...(home.toolCalls ?? []), call];
  }

  #find(id: string | null): HistoryMessage | undefined {
    return id === null ? undefined : this.#messages.findLast((message) => message.id === id);
  }

  #calls() {
    return this.#messages.flatMap(({ toolCalls }) => toolCalls ?? []);
  }

  #bound(): void {
    const sizes = this.#messages.map((message) => JSON.stringify(message).length);
    let total = sizes.reduce((sum, size) => sum + size, 0);
    let from = 0;
    while (
      from < this.#messages.length - 1 &&
      (total > MAX_HISTORY || (from > 0 && this.#messages[from]?.role !== 'user'))
    ) {
      total -= sizes[from] ?? 0;
      from += 1;
    }
    if (from > 0) this.#messages = this.#messages.slice(from);
  }
}

function hasSameText({ content }: HistoryMessage, incoming: Fields): boolean {
  const text = contentText(content).trim();
  return text !== '' && text === contentText(incoming.content).trim();
}

function sharesToolCall({ toolCalls = [] }: HistoryMessage, incoming: Fields): boolean {
  const calls = new Set(listOf(incoming.toolCalls).map((call) => textOf(fieldsOf(call).id)));
  return toolCalls.some(({ id }) => calls.has(id));
}

function appendText(text: unknown, delta: unknown, isWhole: boolean): string {
  const before = isWhole || typeof text !== 'string' ? '' : text;
  return truncateText(before + (typeof delta === 'string' ? delta : ''), MAX_TEXT);
}
