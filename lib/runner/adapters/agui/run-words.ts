import { type Fields, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH, MAX_OTHER_TEXT } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import type { SessionWriter } from '../writer/session-writer';
import type { Speaker } from '../writer/speaker';
import type { TextAbout } from '../writer/speech-events';
import type { Asks } from './asks';

/** Most open messages of other roles. */
const MAX_OTHERS = 16;

/**
 * What a run says and does: texts, thoughts, calls and their results, in the order in which they came.
 *
 * Servers differ: thoughts have the role "assistant" or "reasoning", or an older name; a call's result may come with
 * its end, and after the text that it belongs to has ended; chunks have no beginning and no end.
 */
export class RunWords {
  readonly #writer: SessionWriter;
  readonly #asks: Asks;
  /** Open messages of people and systems. */
  readonly #others = new Map<string, { role: string; text: string }>();
  readonly #chunks = { text: null as string | null, call: null as string | null, thought: null as string | null };

  constructor(writer: SessionWriter, asks: Asks) {
    this.#writer = writer;
    this.#asks = asks;
  }

  /** @returns whether it was an event of this kind */
  read(event: Fields): boolean {
    const type = String(event.type);
    const handle = Object.hasOwn(READ, type) ? READ[type] : undefined;
    if (handle === undefined) return false;
    const task = textOf(event.subagentRunId);
    const speaker = this.#writer.speaker(task === null ? null : truncateText(task, MAX_ID_LENGTH));
    handle(this, event, speaker, task !== null);
    return true;
  }

  startText(event: Fields): void {
    const role = textOf(event.role) ?? 'assistant';
    const id = messageIn(event);
    if (role !== 'assistant' && id !== null) remember(this.#others, id, { role, text: '' }, MAX_OTHERS);
  }

  text(event: Fields, speaker: Speaker): void {
    const id = messageIn(event);
    const other = id === null ? undefined : this.#others.get(id);
    const delta = deltaIn(event);
    if (other === undefined) speaker.say('text', id, delta, aboutNamed(id));
    else other.text = truncateText(other.text + delta, MAX_OTHER_TEXT);
  }

  endText(event: Fields, speaker: Speaker): void {
    const id = messageIn(event);
    const other = id === null ? undefined : this.#others.get(id);
    if (id === null || other === undefined) {
      speaker.endText(id ?? undefined, 'text');
      return;
    }
    this.#others.delete(id);
    if (other.role === 'user') this.#writer.userMessage(id, other.text);
    else if (other.text !== '') this.#writer.notice(other.text);
  }

  textChunk(event: Fields, speaker: Speaker): void {
    const role = textOf(event.role) ?? 'assistant';
    const id = messageIn(event) ?? this.#chunks.text;
    this.#chunks.text = id;
    if (role === 'assistant') speaker.say('text', id, deltaIn(event), aboutNamed(id));
    else if (id !== null) this.#writer.userMessage(id, deltaIn(event));
  }

  thought(event: Fields, speaker: Speaker): void {
    const id = messageIn(event);
    speaker.say('thought', id, deltaIn(event), aboutNamed(id));
  }

  thoughtChunk(event: Fields, speaker: Speaker): void {
    this.thought({ ...event, messageId: messageIn(event) ?? this.#chunks.thought }, speaker);
    this.#chunks.thought = messageIn(event) ?? this.#chunks.thought;
  }

  call(event: Fields, speaker: Speaker, isSubagents: boolean): void {
    const id = callIn(event);
    if (id === null || speaker.shownCall(id) !== null) return;
    const name = truncateText(textOf(event.toolCallName) ?? 'tool', 1_024);
    speaker.call(id, name);
    if (!isSubagents) this.#asks.called(id, name);
  }

  args(event: Fields, speaker: Speaker): void {
    const id = callIn(event);
    if (id === null) return;
    // The stream was joined in the middle of the call.
    if (speaker.shownCall(id) === null) this.call(event, speaker, true);
    const delta = deltaIn(event);
    if (delta === '') return;
    speaker.addArgs(id, delta);
    this.#asks.addArgs(id, delta);
  }

  callChunk(event: Fields, speaker: Speaker, isSubagents: boolean): void {
    const id = callIn(event) ?? this.#chunks.call;
    if (id === null) return;
    this.#chunks.call = id;
    this.call({ ...event, toolCallId: id }, speaker, isSubagents);
    this.args({ ...event, toolCallId: id }, speaker);
  }

  endCall(event: Fields, speaker: Speaker): void {
    const id = callIn(event);
    if (id === null) return;
    speaker.endCall(id);
    if (event.result !== undefined && event.result !== null) this.result(event, speaker, event.result);
  }

  result(event: Fields, speaker: Speaker, content: unknown): void {
    const id = callIn(event);
    if (id === null) return;
    const text = typeof content === 'string' ? content : (JSON.stringify(content) ?? '');
    const isError = event.isError === true || event.is_error === true || textOf(event.error) !== null;
    this.#asks.hasResult(id);
    speaker.result(id, text, { isError });
  }
}

type Read = (words: RunWords, event: Fields, speaker: Speaker, isSubagents: boolean) => void;

const thought: Read = (words, event, speaker) => words.thought(event, speaker);
const endThought: Read = (_, event, speaker) => speaker.endText(messageIn(event) ?? undefined, 'thought');
const nothing: Read = () => {};

const READ: Record<string, Read | undefined> = {
  TEXT_MESSAGE_START: (words, event) => words.startText(event),
  TEXT_MESSAGE_CONTENT: (words, event, speaker) => words.text(event, speaker),
  TEXT_MESSAGE_END: (words, event, speaker) => words.endText(event, speaker),
  TEXT_MESSAGE_CHUNK: (words, event, speaker) => words.textChunk(event, speaker),
  REASONING_START: nothing,
  REASONING_MESSAGE_START: nothing,
  REASONING_MESSAGE_CONTENT: thought,
  REASONING_MESSAGE_CHUNK: (words, event, speaker) => words.thoughtChunk(event, speaker),
  REASONING_MESSAGE_END: endThought,
  REASONING_END: endThought,
  THINKING_START: nothing,
  THINKING_TEXT_MESSAGE_START: nothing,
  THINKING_TEXT_MESSAGE_CONTENT: thought,
  THINKING_TEXT_MESSAGE_END: nothing,
  THINKING_END: nothing,
  TOOL_CALL_START: (words, event, speaker, isSubagents) => words.call(event, speaker, isSubagents),
  TOOL_CALL_ARGS: (words, event, speaker) => words.args(event, speaker),
  TOOL_CALL_CHUNK: (words, event, speaker, isSubagents) => words.callChunk(event, speaker, isSubagents),
  TOOL_CALL_END: (words, event, speaker) => words.endCall(event, speaker),
  TOOL_CALL_RESULT: (words, event, speaker) => words.result(event, speaker, event.content),
};

/** Whether it says or does something in a turn, rather than beside it. */
export function isOfTurn(event: Fields): boolean {
  return Object.hasOwn(READ, String(event.type));
}

/** A message with an id continues under it, whatever comes in between. */
function aboutNamed(id: string | null): TextAbout {
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
