import type { AgUiEvent } from '@/lib/protocol/ag-ui';

/** One content block of an assistant message, and how much of it has been told. */
export interface Block {
  kind: BlockKind;
  /** messageId of text and reasoning, toolCallId of a tool call. */
  id: string;
  /** What has been emitted of it. */
  shown: string;
  phase: 'unsaid' | 'told' | 'ended';
  /** Its index in the stream, once a stream tells it. */
  streamIndex: number | null;
  /** The stream said that it is complete. */
  stopped: boolean;
  /** The whole message has come, so the stream has nothing new to say. */
  whole: boolean;
  toolName: string;
  /** The model's id of a tool call. One that it uses again within a turn is another call, with an id of our own. */
  callId: string | null;
  /** The arguments of a whole tool call, as JSON. */
  input: string | null;
  /** Its result has come. */
  isAnswered: boolean;
  parentMessageId: string;
}

export type BlockKind = 'text' | 'thinking' | 'tool';

interface Voice {
  start(block: Block): AgUiEvent[];
  delta(block: Block, delta: string): AgUiEvent;
  end(block: Block): AgUiEvent[];
}

/** The AG-UI 1.0 events for each kind of block. */
export const VOICES: Record<BlockKind, Voice> = {
  text: {
    start: ({ id }) => [{ type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' }],
    delta: ({ id }, delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta }),
    end: ({ id }) => [{ type: 'TEXT_MESSAGE_END', messageId: id }],
  },
  thinking: {
    start: ({ id }) => [
      { type: 'REASONING_START', messageId: id },
      { type: 'REASONING_MESSAGE_START', messageId: id, role: 'reasoning' },
    ],
    delta: ({ id }, delta) => ({ type: 'REASONING_MESSAGE_CONTENT', messageId: id, delta }),
    end: ({ id }) => [
      { type: 'REASONING_MESSAGE_END', messageId: id },
      { type: 'REASONING_END', messageId: id },
    ],
  },
  tool: {
    start: ({ id, toolName, parentMessageId }) => [
      { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: toolName, parentMessageId },
    ],
    delta: ({ id }, delta) => ({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta }),
    end: ({ id }) => [{ type: 'TOOL_CALL_END', toolCallId: id }],
  },
};

/** The kind of a content block; a type that is missing here gets a stand-in. */
export const BLOCK_KINDS: ReadonlyMap<unknown, BlockKind> = new Map([
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['tool_use', 'tool'],
  ['server_tool_use', 'tool'],
  ['mcp_tool_use', 'tool'],
]);

/**
 * The streamed block that a whole text belongs to.
 *
 * Whole messages carry one block each and no index, in the order of the blocks; in SDK 0.3.329 each comes just before
 * its `content_block_stop`, but nothing guarantees that. So this takes the block that says exactly this text; else the
 * one being streamed that has said its beginning; else one that stopped short; else the first that still waits.
 */
export function matchWhole(blocks: readonly Block[], kind: BlockKind, text: string): Block | undefined {
  const waiting = blocks.filter((block) => block.kind === kind && !block.whole);
  const begins = (block: Block) => text.startsWith(block.shown);
  return (
    waiting.find((block) => block.shown === text) ??
    waiting.find((block) => !block.stopped && begins(block)) ??
    waiting.find((block) => begins(block)) ??
    (text === '' ? undefined : waiting[0])
  );
}
