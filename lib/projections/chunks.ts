import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import type { Chunked } from '@/lib/protocol/turn-places';
import type { EventEntry } from './event-entry';

/**
 * What is told in chunks: each opens or goes on with a message, a thought or a call, and nobody tells the end. The first
 * names it, those that follow need not, until the agent begins something else.
 */

/** Most that are remembered to speak in chunks at a time: the agent, and subagents of it. */
const MAX_CHUNKED = 32;

const CHUNKED: Record<string, { kind: string; field: string } | undefined> = {
  TEXT_MESSAGE_CHUNK: { kind: 'text', field: 'messageId' },
  REASONING_MESSAGE_CHUNK: { kind: 'reasoning', field: 'messageId' },
  TOOL_CALL_CHUNK: { kind: 'tool', field: 'toolCallId' },
};

type Chunks = readonly Chunked[] | undefined;

function chunkOf(chunks: Chunks, task: string | null): Chunked | undefined {
  return chunks?.find((chunk) => chunk.task === task);
}

/** The entry with the name of what its chunk goes on with, where it leaves that out. */
export function namedChunk(chunks: Chunks, entry: EventEntry, task: string | null): EventEntry {
  const { event } = entry;
  const chunked = Object.hasOwn(CHUNKED, event.type) ? CHUNKED[event.type] : undefined;
  if (chunked === undefined || (event[chunked.field] ?? '') !== '') return entry;
  const before = chunkOf(chunks, task);
  return before?.kind === chunked.kind ? { ...entry, event: { ...event, [chunked.field]: before.id } } : entry;
}

/** Whether something else is begun. What a person says comes in between, whoever tells it. */
export function endsChunks(event: AgUiEvent): boolean {
  return /^RUN_|_START$/.test(event.type) && event.role !== 'user';
}

/** @returns the same where that is what was told last */
export function withChunk(chunks: Chunks, chunk: Chunked): Chunks {
  const before = chunkOf(chunks, chunk.task);
  if (before?.kind === chunk.kind && before.id === chunk.id) return chunks;
  return [...(withoutChunk(chunks, chunk.task) ?? []), chunk].slice(-MAX_CHUNKED);
}

/** @returns the same where nothing was told in chunks */
export function withoutChunk(chunks: Chunks, task: string | null): Chunks {
  if (chunkOf(chunks, task) === undefined) return chunks;
  const others = chunks?.filter((chunk) => chunk.task !== task) ?? [];
  return others.length === 0 ? undefined : others;
}
