import { type Fields, fieldsOf, isJson, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { setBounded } from '../wire';
import type { PartAssembler } from '../writer/part-assembler';
import type { TextOptions } from '../writer/part-events';
import { type CallResult, verdictOf } from './requests';
import type { Tasks } from './tasks';
import { hasStandIns, rawIfSmall, resultText, standIn } from './transcript-line';

/** Subagents followed at once; the least recently active is dropped first. */
const MAX_SUBAGENTS = 64;
/** API messages kept per assembler, so that a late whole message matches its stream. */
const MAX_MESSAGES = 16;

/** Task run whose subagent is speaking; null for the main thread. */
interface TaskRunRef {
  taskId: string | null;
  runId: string | null;
}

export interface ToolResult extends CallResult {
  toolUseId: string;
}

type TextKind = 'text' | 'thought';
type BlockKind = TextKind | 'tool';

interface Block<K extends BlockKind = BlockKind> {
  kind: K;
  /** Part name of a text or thought; log id of a call. */
  name: string;
  /** Content still expected: each block is streamed and also comes as a whole message. */
  awaits: 'stream' | 'whole' | 'both' | null;
}

interface ApiMessage {
  /** Prefix of the block names. */
  base: string;
  /** In start order. */
  blocks: Block[];
  /** By stream index. */
  streamed: Map<number, Block>;
}

/**
 * Assembles the model's messages from SDK streams and whole messages: the main thread in the open turn, each subagent
 * under its task. Streams of subagents may interleave.
 *
 * @see SDKPartialAssistantMessage, SDKAssistantMessage, Agent SDK 0.3.329
 */
export class ApiMessages {
  readonly #tasks: Pick<Tasks, 'latestRun' | 'ofToolUse'>;
  readonly #parts: (task: TaskRunRef) => PartAssembler;
  readonly #blocks = new WeakMap<PartAssembler, ContentBlockStream>();
  readonly #main: ContentBlockStream;
  /** By the subagent's tool call, least recently active first. */
  readonly #subagents = new Map<string, ContentBlockStream>();

  constructor(tasks: Pick<Tasks, 'latestRun' | 'ofToolUse'>, parts: (task: TaskRunRef) => PartAssembler) {
    this.#tasks = tasks;
    this.#parts = parts;
    this.#main = this.#blocksOf({ taskId: null, runId: null });
  }

  stream(message: Fields): void {
    this.#of(message).stream(fieldsOf(message.event));
  }

  /** @returns results of tools that ran at the API */
  assistant(message: Fields): ToolResult[] {
    const stream = this.#of(message);
    const { id, content } = fieldsOf(message.message);
    const results: ToolResult[] = [];
    for (const block of typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content)) {
      const result = toolResult(stream.parts, message, fieldsOf(block));
      if (result === null) stream.whole(textOf(id) ?? textOf(message.uuid), block);
      else results.push(result);
    }
    return results;
  }

  toolResults(message: Fields): ToolResult[] {
    const { parts } = this.#of(message);
    return listOf(fieldsOf(message.message).content)
      .map((block) => toolResult(parts, message, fieldsOf(block)))
      .filter((result) => result !== null);
  }

  shownCall(callId: string): string {
    for (const { parts } of [this.#main, ...this.#subagents.values()]) {
      const shown = parts.loggedCallId(callId);
      if (shown !== null) return shown;
    }
    return callId;
  }

  closeMain(): void {
    this.#main.close();
  }

  taskEnded(taskId: string): void {
    for (const [key, one] of this.#subagents) if (one.parts.taskId === taskId) this.#forget(key, one);
  }

  closeAll(): void {
    this.#main.close();
    for (const [key, one] of this.#subagents) this.#forget(key, one);
  }

  #of(message: Fields): ContentBlockStream {
    const task = this.taskOf(message);
    if (task.taskId === null) return this.#main;
    const key = textOf(message.parent_tool_use_id) ?? task.taskId;
    const one = this.#subagents.get(key) ?? this.#blocksOf(task);
    this.#subagents.delete(key);
    this.#subagents.set(key, one);
    const [oldest] = this.#subagents;
    if (oldest !== undefined && this.#subagents.size > MAX_SUBAGENTS) this.#forget(...oldest);
    return one;
  }

  #blocksOf(task: TaskRunRef): ContentBlockStream {
    const parts = this.#parts(task);
    const blocks = this.#blocks.get(parts) ?? new ContentBlockStream(parts);
    this.#blocks.set(parts, blocks);
    return blocks;
  }

  /** Whole messages name the subagent, streams only its tool call. */
  taskOf(message: Fields): TaskRunRef {
    const agentId = textOf(message.agent_id);
    const toolUseId = textOf(message.parent_tool_use_id);
    if (agentId !== null) return { taskId: agentId, runId: this.#tasks.latestRun(agentId) };
    if (toolUseId === null) return { taskId: null, runId: null };
    const task = this.#tasks.ofToolUse(toolUseId);
    return { taskId: task?.id ?? toolUseId, runId: task?.runId ?? null };
  }

  #forget(key: string, blocks: ContentBlockStream): void {
    blocks.close();
    this.#subagents.delete(key);
  }
}

/**
 * Content blocks of one speaker. A stream carries one message at a time and each block also arrives as a whole message;
 * each block is written once, however the two interleave.
 *
 * A block ends with its whole message or when nothing more can arrive, not at `content_block_stop`, because a whole
 * text can still correct its deltas.
 */
class ContentBlockStream {
  readonly parts: PartAssembler;
  readonly #messages = new Map<string, ApiMessage>();
  #current: ApiMessage | null = null;
  /** Never reset, so names stay unique across turns. */
  #idCount = 0;

  constructor(parts: PartAssembler) {
    this.parts = parts;
  }

  stream(event: Fields): void {
    const index = numberOf(event.index);
    switch (event.type) {
      case 'message_start':
        this.parts.endAll();
        this.#current = this.#message(textOf(fieldsOf(event.message).id) ?? this.#nameless());
        return;
      case 'content_block_start':
        if (index !== null) this.#start(index, fieldsOf(event.content_block));
        return;
      case 'content_block_delta':
        if (index !== null) this.#delta(index, fieldsOf(event.delta));
        return;
      case 'content_block_stop': {
        const block = this.#current?.streamed.get(index ?? -1);
        if (block?.awaits === 'both') block.awaits = 'whole';
        return;
      }
      // message_delta, message_stop and ping are ignored: the result covers them.
    }
  }

  whole(apiMessageId: string | null, content: unknown): void {
    const message = apiMessageId === null ? this.#streaming() : this.#message(apiMessageId);
    const fields = fieldsOf(content);
    const kind = BLOCK_KINDS.get(fields.type);
    if (kind === 'tool') this.#wholeCall(message, fields);
    else if (kind !== undefined) this.#wholeText(message, kind, textOf(fields[`${fields.type}`]) ?? '');
    // The remaining types are never streamed.
    else if (fields.type === 'redacted_thinking') this.#setText(this.#add(message, 'thought', null), '[redacted]');
    else this.#setText(this.#add(message, 'text', null), standIn(content), rawIfSmall(content));
  }

  /** Closes all blocks: the next run may reuse the model's ids. */
  close(): void {
    this.parts.close();
    this.#current = null;
    this.#messages.clear();
  }

  #start(index: number, content: Fields): void {
    const kind = BLOCK_KINDS.get(content.type);
    if (kind === undefined) return;
    const message = this.#streaming();
    if (message.streamed.has(index)) return;
    if (kind === 'tool') {
      const name = this.#call(message, content);
      const block = message.blocks.find((one) => one.kind === kind && one.name === name);
      if (block !== undefined) message.streamed.set(index, block);
      return;
    }
    const complete = message.blocks.find((one) => one.kind === kind && one.awaits === 'stream');
    if (complete !== undefined) complete.awaits = null;
    const block = complete ?? this.#add(message, kind, 'both');
    message.streamed.set(index, block);
    this.#append(block, textOf(content[`${content.type}`]) ?? '');
  }

  #delta(index: number, delta: Fields): void {
    const [kind, field] = DELTAS.get(delta.type) ?? [];
    if (kind === undefined || field === undefined) return;
    let block = this.#current?.streamed.get(index);
    if (block === undefined && kind !== 'tool') {
      // The block's start was lost.
      const message = this.#streaming();
      block = this.#add(message, kind, 'both');
      message.streamed.set(index, block);
    }
    if (block?.kind === kind) this.#append(block, textOf(delta[field]) ?? '');
  }

  #wholeText(message: ApiMessage, kind: TextKind, text: string): void {
    const waiting = message.blocks.filter((one) => one.kind === kind && awaitsWhole(one));
    const streamed = matchWhole(waiting, text, ({ name }) => this.parts.textOf(kind, name) ?? '');
    if (streamed !== undefined) streamed.awaits = null;
    const { name } = streamed ?? this.#add(message, kind, 'stream');
    this.#setText({ kind, name }, text);
  }

  #setText({ kind, name }: Pick<Block<TextKind>, 'kind' | 'name'>, text: string, about: TextOptions = {}): void {
    this.parts.setText(kind, name, text, { ...about, staysOpen: true });
    this.parts.endText(name, kind);
  }

  #wholeCall(message: ApiMessage, content: Fields): void {
    const args = JSON.stringify(content.input ?? {});
    const name = this.#call(message, content, args);
    if (name === null) return;
    // The CLI fills in defaults (Edit's replace_all), so valid arguments stay as the model wrote them.
    if (!isJson(this.parts.argsOf(name))) this.parts.setArgs(name, args);
    this.parts.endCall(name, args);
  }

  /**
   * @param args arguments of a whole call; undefined while streaming
   * @returns log id
   */
  #call(message: ApiMessage, content: Fields, args?: string): string | null {
    const callId = textOf(content.id);
    if (callId === null) return null;
    const before = this.parts.loggedCallId(callId);
    const known = message.blocks.find(({ kind, name }) => kind === 'tool' && name === before);
    if (known !== undefined && (args === undefined ? known.awaits === 'stream' : awaitsWhole(known))) {
      known.awaits = null;
      return known.name;
    }
    const text = message.blocks.findLast(
      ({ kind, name }) => kind === 'text' && this.parts.textState(kind, name) !== 'new',
    );
    const parentMessageId = text?.name ?? message.base;
    const isStart = known === undefined;
    const name = this.parts.startCall(callId, textOf(content.name) ?? 'tool', { parentMessageId, isStart, args });
    if (name !== before) message.blocks.push({ kind: 'tool', name, awaits: args === undefined ? 'both' : 'stream' });
    return name;
  }

  /** Appends to a block unless its whole message has arrived. */
  #append(block: Block, delta: string): void {
    const { kind, name } = block;
    if (!awaitsWhole(block)) return;
    if (kind === 'tool') this.parts.appendArgs(name, delta);
    else if (this.parts.textState(kind, name) !== 'ended')
      this.parts.appendText(kind, name, delta, { staysOpen: true });
  }

  #add<K extends TextKind>(message: ApiMessage, kind: K, awaits: Block['awaits']): Block<K> {
    const block = { kind, name: `${message.base}/${this.#idCount++}`, awaits };
    message.blocks.push(block);
    return block;
  }

  /** The streaming message; an anonymous one if its start was lost. */
  #streaming(): ApiMessage {
    this.#current ??= this.#message(this.#nameless());
    return this.#current;
  }

  #nameless(): string {
    return `stream-${this.#idCount++}`;
  }

  #message(id: string): ApiMessage {
    const known = this.#messages.get(id);
    if (known !== undefined) return known;
    const message: ApiMessage = { base: `${this.parts.prefix()}/${id}`, blocks: [], streamed: new Map() };
    setBounded(this.#messages, id, message, MAX_MESSAGES);
    return message;
  }
}

/** Streamed block types. Other types get a stand-in. */
const BLOCK_KINDS: ReadonlyMap<unknown, BlockKind> = new Map([
  ['text', 'text'],
  ['thinking', 'thought'],
  ['tool_use', 'tool'],
  ['server_tool_use', 'tool'],
  ['mcp_tool_use', 'tool'],
]);

const DELTAS: ReadonlyMap<unknown, readonly [BlockKind, string]> = new Map([
  ['text_delta', ['text', 'text']],
  ['thinking_delta', ['thought', 'thinking']],
  ['input_json_delta', ['tool', 'partial_json']],
] as const);

function awaitsWhole({ awaits }: Block): boolean {
  return awaits === 'whole' || awaits === 'both';
}

function toolResult(parts: PartAssembler, message: Fields, block: Fields): ToolResult | null {
  const toolUseId = textOf(block.tool_use_id);
  if (toolUseId === null || typeof block.type !== 'string' || !block.type.endsWith('tool_result')) return null;
  const text = resultText(block.content);
  const isError = block.is_error === true;
  const raw = hasStandIns(block.content) ? rawIfSmall(block.content) : {};
  parts.setResult(toolUseId, text, { isError, messageId: `${textOf(message.uuid) ?? 'result'}/${toolUseId}`, ...raw });
  return { toolUseId, isError, text, verdict: verdictOf(message, toolUseId) };
}

/**
 * Finds the streamed block that a whole text completes.
 *
 * Whole messages carry one block without an index, in block order. In SDK 0.3.329 each precedes its
 * `content_block_stop`, but nothing guarantees that. So prefer the block with exactly this text, then the streaming
 * block with a matching prefix, then any block with a matching prefix, then the first waiting block.
 */
function matchWhole(waiting: readonly Block[], text: string, shownOf: (block: Block) => string): Block | undefined {
  const begins = (block: Block) => text.startsWith(shownOf(block));
  return (
    waiting.find((block) => shownOf(block) === text) ??
    waiting.find((block) => block.awaits === 'both' && begins(block)) ??
    waiting.find((block) => begins(block)) ??
    (text === '' ? undefined : waiting[0])
  );
}
