import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH, MAX_OTHER_TEXT } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import type { PartAssembler } from '../writer/part-assembler';
import type { TextOptions } from '../writer/part-events';
import type { SessionWriter } from '../writer/session-writer';
import { jsonBytes, truncateWithNote } from '../writer/size-limits';
import { isTooDeep } from './agui-frames';
import type { RunRequests } from './requests';

/** Open messages of other roles. */
const MAX_OTHERS = 16;

/**
 * Writes a run's content: texts, thoughts, calls and results.
 *
 * Servers differ: thoughts have the role "assistant" or "reasoning" or an older event name; a result may come with the
 * end of its call, or after its text has ended; chunks have no start and end.
 */
export class RunEvents {
  readonly #writer: SessionWriter;
  readonly #requests: RunRequests;
  /** Open user and system messages. */
  readonly #others = new Map<string, { role: string; text: string }>();
  readonly #chunks = { text: null as string | null, call: null as string | null, thought: null as string | null };

  constructor(writer: SessionWriter, requests: RunRequests) {
    this.#writer = writer;
    this.#requests = requests;
  }

  /** @returns false for other events */
  read(event: Fields): boolean {
    const type = String(event.type);
    const handle = Object.hasOwn(HANDLERS, type) ? HANDLERS[type] : undefined;
    if (handle === undefined) return false;
    const task = textOf(event.subagentRunId);
    const parts = this.#writer.parts(task === null ? null : truncateText(task, MAX_ID_LENGTH));
    handle(this, event, parts, task !== null);
    return true;
  }

  startText(event: Fields): void {
    const role = textOf(event.role) ?? 'assistant';
    const id = messageIn(event);
    if (role !== 'assistant' && id !== null) setBounded(this.#others, id, { role, text: '' }, MAX_OTHERS);
  }

  text(event: Fields, parts: PartAssembler): void {
    const id = messageIn(event);
    const other = id === null ? undefined : this.#others.get(id);
    const delta = deltaIn(event);
    if (other === undefined) parts.appendText('text', id, delta, aboutNamed(id));
    else other.text = truncateText(other.text + delta, MAX_OTHER_TEXT);
  }

  endText(event: Fields, parts: PartAssembler): void {
    const id = messageIn(event);
    const other = id === null ? undefined : this.#others.get(id);
    if (id === null || other === undefined) {
      parts.endText(id ?? undefined, 'text');
      return;
    }
    this.#others.delete(id);
    if (other.role === 'user') this.#writer.userMessage(id, other.text);
    else if (other.text !== '') this.#writer.notice(other.text);
  }

  textChunk(event: Fields, parts: PartAssembler): void {
    const role = textOf(event.role) ?? 'assistant';
    const id = messageIn(event) ?? this.#chunks.text;
    this.#chunks.text = id;
    if (role === 'assistant') parts.appendText('text', id, deltaIn(event), aboutNamed(id));
    else if (id !== null) this.#writer.userMessage(id, deltaIn(event));
  }

  thought(event: Fields, parts: PartAssembler): void {
    const id = messageIn(event);
    parts.appendText('thought', id, deltaIn(event), aboutNamed(id));
  }

  thoughtChunk(event: Fields, parts: PartAssembler): void {
    this.thought({ ...event, messageId: messageIn(event) ?? this.#chunks.thought }, parts);
    this.#chunks.thought = messageIn(event) ?? this.#chunks.thought;
  }

  call(event: Fields, parts: PartAssembler, isSubagents: boolean): void {
    const id = callIn(event);
    if (id === null || parts.loggedCallId(id) !== null) return;
    const name = truncateText(textOf(event.toolCallName) ?? 'tool', 1_024);
    parts.startCall(id, name);
    if (!isSubagents) this.#requests.called(id, name);
  }

  args(event: Fields, parts: PartAssembler): void {
    const id = callIn(event);
    if (id === null) return;
    // The stream was joined within the call.
    if (parts.loggedCallId(id) === null) this.call(event, parts, true);
    const delta = deltaIn(event);
    if (delta === '') return;
    parts.appendArgs(id, delta);
    this.#requests.addArgs(id, delta);
  }

  callChunk(event: Fields, parts: PartAssembler, isSubagents: boolean): void {
    const id = callIn(event) ?? this.#chunks.call;
    if (id === null) return;
    this.#chunks.call = id;
    this.call({ ...event, toolCallId: id }, parts, isSubagents);
    this.args({ ...event, toolCallId: id }, parts);
  }

  endCall(event: Fields, parts: PartAssembler): void {
    const id = callIn(event);
    if (id === null) return;
    parts.endCall(id);
    if (event.result !== undefined && event.result !== null) this.result(event, parts, event.result);
  }

  result(event: Fields, parts: PartAssembler, content: unknown): void {
    const id = callIn(event);
    if (id === null) return;
    const text = typeof content === 'string' ? content : (JSON.stringify(content) ?? '');
    const isError = event.isError === true || event.is_error === true || textOf(event.error) !== null;
    this.#requests.resultArrived(id);
    parts.setResult(id, text, { isError });
  }
}

type Handler = (boundedText: RunEvents, event: Fields, parts: PartAssembler, isSubagents: boolean) => void;

const thought: Handler = (boundedText, event, parts) => boundedText.thought(event, parts);
const endThought: Handler = (_, event, parts) => parts.endText(messageIn(event) ?? undefined, 'thought');
const nothing: Handler = () => {};

const HANDLERS: Record<string, Handler | undefined> = {
  TEXT_MESSAGE_START: (boundedText, event) => boundedText.startText(event),
  TEXT_MESSAGE_CONTENT: (boundedText, event, parts) => boundedText.text(event, parts),
  TEXT_MESSAGE_END: (boundedText, event, parts) => boundedText.endText(event, parts),
  TEXT_MESSAGE_CHUNK: (boundedText, event, parts) => boundedText.textChunk(event, parts),
  REASONING_START: nothing,
  REASONING_MESSAGE_START: nothing,
  REASONING_MESSAGE_CONTENT: thought,
  REASONING_MESSAGE_CHUNK: (boundedText, event, parts) => boundedText.thoughtChunk(event, parts),
  REASONING_MESSAGE_END: endThought,
  REASONING_END: endThought,
  THINKING_START: nothing,
  THINKING_TEXT_MESSAGE_START: nothing,
  THINKING_TEXT_MESSAGE_CONTENT: thought,
  THINKING_TEXT_MESSAGE_END: nothing,
  THINKING_END: nothing,
  TOOL_CALL_START: (boundedText, event, parts, isSubagents) => boundedText.call(event, parts, isSubagents),
  TOOL_CALL_ARGS: (boundedText, event, parts) => boundedText.args(event, parts),
  TOOL_CALL_CHUNK: (boundedText, event, parts, isSubagents) => boundedText.callChunk(event, parts, isSubagents),
  TOOL_CALL_END: (boundedText, event, parts) => boundedText.endCall(event, parts),
  TOOL_CALL_RESULT: (boundedText, event, parts) => boundedText.result(event, parts, event.content),
};

/** True for events that are content of a turn. */
export function isOfTurn(event: Fields): boolean {
  return Object.hasOwn(HANDLERS, String(event.type));
}

/** A message with an id continues under that id, whatever comes in between. */
function aboutNamed(id: string | null): TextOptions {
  return id === null ? {} : { staysOpen: true };
}

function messageIn(event: Fields): string | null {
  const id = textOf(event.messageId) ?? textOf(event.message_id);
  return id === null ? null : truncateText(id, MAX_ID_LENGTH);
}

function callIn(event: Fields): string | null {
  const id = textOf(event.toolCallId) ?? textOf(event.tool_call_id);
  return id === null ? null : truncateText(id, MAX_ID_LENGTH);
}

function deltaIn(event: Fields): string {
  return typeof event.delta === 'string' ? event.delta : '';
}

/** Largest event whose record and request still fit. Bytes of JSON. */
const MAX_EVENT_BYTES = 768 * 1024;
/** Length of the quoted beginning of an oversized event. */
const MAX_QUOTED = 4 * 1024;

/** Names reserved for Interlude: an agent's events with them get a prefix. */
const OURS: ReadonlySet<string> = new Set(Object.values(CUSTOM).filter((name) => !name.startsWith('task:')));

/** Forwards events stored unchanged: state, steps, activities, custom events. An oversized event is split or quoted. */
export function forwardedEvents(event: Fields): AgUiEvent[] {
  const { metadata, rawEvent: _, type, ...rest } = event;
  const { interlude: __, ...others } = fieldsOf(metadata);
  const kept: AgUiEvent = {
    type: truncateText(String(type), 256),
    ...rest,
    ...(Object.keys(others).length === 0 ? {} : { metadata: others }),
  };
  if (kept.type === 'CUSTOM') {
    const name = truncateText(String(rest.name ?? ''), 256);
    kept.name = OURS.has(name) || name === '' ? `agui:${name}` : name;
  }
  if (fits(kept)) return [kept];
  if (kept.type === 'MESSAGES_SNAPSHOT') {
    return listOf(event.messages).flatMap((message) => {
      const alone: AgUiEvent = { type: 'MESSAGES_SNAPSHOT', messages: [shortened(message)] };
      return [fits(alone) ? alone : oversizedEvent(alone)];
    });
  }
  return [oversizedEvent(kept)];
}

/** A RAW event for data that is not an event. */
export function unreadable(data: unknown): AgUiEvent {
  const event = typeof data === 'string' ? truncateWithNote(data, MAX_QUOTED) : data;
  const raw: AgUiEvent = { type: 'RAW', event, source: 'agui' };
  return fits(raw) ? raw : oversizedEvent(raw);
}

function oversizedEvent(event: AgUiEvent): AgUiEvent {
  const beginning = isTooDeep(event) ? '' : truncateText(JSON.stringify(event), MAX_QUOTED);
  return { type: 'CUSTOM', name: 'agui:too-much', value: { type: event.type, beginning } };
}

function shortened(message: unknown): unknown {
  if (!isObject(message) || typeof message.content !== 'string') return message;
  return { ...message, content: truncateWithNote(message.content, MAX_EVENT_BYTES / 2) };
}

function fits(event: AgUiEvent): boolean {
  if (isTooDeep(event)) return false;
  const json = JSON.stringify(event);
  return json.length <= MAX_EVENT_BYTES && (json.length * 3 <= MAX_EVENT_BYTES || jsonBytes(json) <= MAX_EVENT_BYTES);
}
