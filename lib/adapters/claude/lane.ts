import { type Fields, fieldsOf, isJson, numberOf, textOf } from '@/lib/protocol/fields';
import type { Emit } from '../emit';
import { type ResultAbout, Speaker, type TextAbout } from '../writer/speaker';
import { BLOCK_KINDS, type Block, type BlockKind, matchWhole } from './block';
import { rawIfSmall, standIn } from './stand-in';

/** Most API messages of a lane whose blocks are remembered, so that a late whole message matches what was streamed. */
const MAX_MESSAGES = 16;

interface ApiMessage {
  /** The prefix of its blocks' ids. */
  base: string;
  blocks: Block[];
}

/**
 * One speaker: the main thread or one subagent. Its stream brings one API message at a time, and each content block also
 * comes as a whole message; a lane says each block once, however the two are interleaved.
 *
 * A block ends when its whole message has come, or when nothing more can come, not at `content_block_stop`: a whole text
 * that differs from the deltas can then still correct them.
 *
 * @see SDKPartialAssistantMessage, SDKAssistantMessage, Agent SDK 0.3.329
 */
export class Lane {
  readonly #speaker: Speaker;
  readonly #base: () => string;
  readonly #messages = new Map<string, ApiMessage>();
  #current: ApiMessage | null = null;
  /** Counts on over the lane's whole life, so that no id is used twice. */
  #named = 0;

  /** @param base the prefix for the ids of messages that open now: the run or the task they belong to */
  constructor(emit: Emit, base: () => string) {
    this.#speaker = new Speaker(emit, base);
    this.#base = base;
  }

  /** One `event` of a `stream_event`. */
  stream(event: Fields): void {
    const index = numberOf(event.index);
    switch (event.type) {
      case 'message_start': {
        // What the last message left open will not go on.
        this.close();
        const id = textOf(fieldsOf(event.message).id) ?? `stream-${this.#named++}`;
        this.#current = this.#message(id);
        return;
      }
      case 'content_block_start':
        if (index !== null) this.#streamStart(index, fieldsOf(event.content_block));
        return;
      case 'content_block_delta':
        if (index !== null) this.#streamDelta(index, fieldsOf(event.delta));
        return;
      case 'content_block_stop': {
        const block = this.#streamed(index);
        if (block !== undefined) block.stopped = true;
        return;
      }
      // message_delta, message_stop and ping are ignored: the result says it all.
    }
  }

  /** One content block of an `assistant` message. */
  whole(apiMessageId: string | null, content: unknown): void {
    const message = apiMessageId === null ? this.#open() : this.#message(apiMessageId);
    const fields = fieldsOf(content);
    const kind = BLOCK_KINDS.get(fields.type);
    if (kind === 'tool') this.#wholeTool(message, fields);
    else if (kind !== undefined) this.#wholeText(message, kind, textOf(fields[`${fields.type}`]) ?? '');
    else if (fields.type === 'redacted_thinking') this.#wholeText(message, 'thought', '[redacted]');
    else this.#wholeText(message, 'text', standIn(content), rawIfSmall(content));
  }

  /**
   * The result of a call: of the oldest under the model's id that has none.
   * @returns false if no such call is known
   */
  result(callId: string, content: string, about: ResultAbout): boolean {
    const block = this.#calls(callId).find(({ isAnswered }) => !isAnswered);
    if (block === undefined) return false;
    block.isAnswered = true;
    this.#speaker.result(block.id, content, about);
    return true;
  }

  /** Ends everything that is open. */
  close(): void {
    this.#speaker.close();
    this.#current = null;
  }

  /** Ends everything that is open; what comes next belongs to another run. */
  reset(): void {
    this.close();
    this.#messages.clear();
  }

  #streamStart(index: number, content: Fields): void {
    const kind = BLOCK_KINDS.get(content.type);
    if (kind === undefined) return;
    const message = this.#open();
    if (this.#streamed(index) !== undefined) return;
    if (kind === 'tool') {
      const block = this.#tool(message, content, null);
      if (block !== null) block.streamIndex = index;
      return;
    }
    const known = message.blocks.find((block) => block.kind === kind && block.whole && block.streamIndex === null);
    const block = known ?? this.#add(message, kind);
    block.streamIndex = index;
    this.#say(block, textOf(content[`${content.type}`]) ?? '');
  }

  #streamDelta(index: number, delta: Fields): void {
    const said = DELTAS.get(delta.type);
    if (said === undefined) return;
    const [kind, field] = said;
    let block = this.#streamed(index);
    if (block === undefined && kind !== 'tool') {
      // Its start was lost.
      block = this.#add(this.#open(), kind);
      block.streamIndex = index;
    }
    if (block?.kind === kind) this.#say(block, textOf(delta[field]) ?? '');
  }

  #wholeText(message: ApiMessage, kind: 'text' | 'thought', text: string, about: TextAbout = {}): void {
    const shownOf = ({ id }: Block) => this.#speaker.shownOf(kind, id) ?? '';
    let block = matchWhole(message.blocks, kind, text, shownOf);
    if (block !== undefined && this.#speaker.hasEnded(kind, block.id)) {
      block.whole = true;
      const shown = shownOf(block);
      const rest = text.startsWith(shown) ? text.slice(shown.length) : text;
      if (rest === '') return;
      // The rest of a block that was ended too early becomes a block of its own: late, but not lost.
      block = this.#add(message, kind);
      this.#speaker.sayWhole(kind, block.id, rest, about);
    } else {
      block ??= this.#add(message, kind);
      this.#speaker.sayWhole(kind, block.id, text, { ...about, staysOpen: true });
    }
    block.whole = true;
    this.#speaker.endText(block.id, kind);
  }

  #wholeTool(message: ApiMessage, content: Fields): void {
    const args = JSON.stringify(content.input ?? {});
    const block = this.#tool(message, content, args);
    if (block === null || block.whole) return;
    block.whole = true;
    block.input = args;
    // The CLI fills in defaults (Edit's replace_all), so valid arguments stay as the model wrote them.
    if (!isJson(this.#speaker.argsOf(block.id))) this.#speaker.args(block.id, args);
    this.#speaker.endCall(block.id);
  }

  /** @param input the arguments of a whole call; null for one that is being streamed */
  #tool(message: ApiMessage, content: Fields, input: string | null): Block | null {
    const callId = textOf(content.id);
    if (callId === null) return null;
    const known = this.#calls(callId);
    const last = known.at(-1);
    const isOther = last?.isAnswered === true && !message.blocks.includes(last);
    const differs = last?.whole === true && input !== null && input !== last.input;
    if (last !== undefined && !isOther && !differs) return last;
    const block = this.#add(message, 'tool', last === undefined ? callId : `${callId}~${this.#named++}`);
    block.callId = callId;
    const before = message.blocks.findLast(({ kind, id }) => kind === 'text' && this.#speaker.hasSaid('text', id));
    this.#speaker.call(block.id, textOf(content.name) ?? 'tool', before?.id ?? message.base);
    return block;
  }

  /** Says the next part of the block, unless it has ended or was said as a whole. */
  #say(block: Block, delta: string): void {
    if (block.whole) return;
    if (block.kind === 'tool') this.#speaker.addArgs(block.id, delta);
    else if (!this.#speaker.hasEnded(block.kind, block.id))
      this.#speaker.say(block.kind, block.id, delta, { staysOpen: true });
  }

  /** The calls under one id of the model's, oldest first. */
  #calls(callId: string): Block[] {
    return [...this.#messages.values()].flatMap(({ blocks }) => blocks.filter((block) => block.callId === callId));
  }

  #end({ kind, id }: Block): void {
    if (kind === 'tool') this.#speaker.endCall(id);
    else this.#speaker.endText(id, kind);
  }

  #streamed(index: number | null): Block | undefined {
    return this.#current?.blocks.find((block) => block.streamIndex === index);
  }

  #add(message: ApiMessage, kind: BlockKind, id: string | null = null): Block {
    const block: Block = {
      kind,
      id: id ?? `${message.base}/${this.#named++}`,
      streamIndex: null,
      stopped: false,
      whole: false,
      callId: null,
      input: null,
      isAnswered: false,
    };
    message.blocks.push(block);
    return block;
  }

  /** The message that is being streamed; a nameless one if its start was lost. */
  #open(): ApiMessage {
    this.#current ??= this.#message(`stream-${this.#named++}`);
    return this.#current;
  }

  #message(id: string): ApiMessage {
    const known = this.#messages.get(id);
    if (known !== undefined) return known;
    const message: ApiMessage = { base: `${this.#base()}/${id}`, blocks: [] };
    this.#messages.set(id, message);
    if (this.#messages.size > MAX_MESSAGES) {
      const [oldest, left] = this.#messages.entries().next().value as [string, ApiMessage];
      for (const block of left.blocks) this.#end(block);
      this.#messages.delete(oldest);
    }
    return message;
  }
}

const DELTAS: ReadonlyMap<unknown, readonly [BlockKind, string]> = new Map([
  ['text_delta', ['text', 'text']],
  ['thinking_delta', ['thought', 'thinking']],
  ['input_json_delta', ['tool', 'partial_json']],
] as const);
