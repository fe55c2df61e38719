/** One content block of an assistant message. Its lane's speaker knows how much of it was said. */
export interface Block {
  kind: BlockKind;
  /** messageId of text and reasoning, toolCallId of a tool call. */
  id: string;
  /** Its index in the stream, once a stream tells it. */
  streamIndex: number | null;
  /** The stream said that it is complete. */
  stopped: boolean;
  /** The whole message has come, so the stream has nothing new to say. */
  whole: boolean;
  /** The model's id of a tool call. One that it uses again within a turn is another call, with an id of our own. */
  callId: string | null;
  /** The arguments of a whole tool call, as JSON. */
  input: string | null;
  /** Its result has come. */
  isAnswered: boolean;
}

export type BlockKind = 'text' | 'thought' | 'tool';

/** The kind of a content block; a type that is missing here gets a stand-in. */
export const BLOCK_KINDS: ReadonlyMap<unknown, BlockKind> = new Map([
  ['text', 'text'],
  ['thinking', 'thought'],
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
export function matchWhole(
  blocks: readonly Block[],
  kind: BlockKind,
  text: string,
  shownOf: (block: Block) => string,
): Block | undefined {
  const waiting = blocks.filter((block) => block.kind === kind && !block.whole);
  const begins = (block: Block) => text.startsWith(shownOf(block));
  return (
    waiting.find((block) => shownOf(block) === text) ??
    waiting.find((block) => !block.stopped && begins(block)) ??
    waiting.find((block) => begins(block)) ??
    (text === '' ? undefined : waiting[0])
  );
}
