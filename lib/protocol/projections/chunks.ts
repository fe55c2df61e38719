import type { AgUiEvent } from '../ag-ui';
import { idField } from '../event-fields';
import type { Chunked } from '../turn-places';
import type { EventEntry } from './event-entry';

/**
 * Chunks: each opens or continues a message, a thought or a call, and no event says where it ends. Only the first chunk
 * has to name it, until the agent begins something else.
 */

/** Most speakers whose chunks are followed at a time: the agent and its subagents. */
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

/** The entry, with the id of what its chunk continues if the chunk leaves it out. */
export function namedChunk(chunks: Chunks, entry: EventEntry, task: string | null): EventEntry {
  const { event } = entry;
  const chunked = Object.hasOwn(CHUNKED, event.type) ? CHUNKED[event.type] : undefined;
  if (chunked === undefined || (event[chunked.field] ?? '') !== '') return entry;
  const before = chunkOf(chunks, task);
  return before?.kind === chunked.kind ? { ...entry, event: { ...event, [chunked.field]: before.id } } : entry;
}

/** Whether the event begins something else. A person's message may come between two chunks. */
export function endsChunks(event: AgUiEvent): boolean {
  return /^RUN_|_START$/.test(event.type) && event.role !== 'user';
}

/** @returns the chunks behind an event that names what it is about; the same list if nothing changes */
export function chunksAfter(chunks: Chunks, event: AgUiEvent, task: string | null): Chunks {
  const left = endsChunks(event) ? withoutChunk(chunks, task) : chunks;
  const chunked = Object.hasOwn(CHUNKED, event.type) ? CHUNKED[event.type] : undefined;
  const id = chunked === undefined ? null : idField(event, chunked.field);
  return chunked === undefined || id === null ? left : withChunk(left, { task, kind: chunked.kind, id });
}

/** @returns the same list if this chunk continues the last one */
export function withChunk(chunks: Chunks, chunk: Chunked): Chunks {
  const before = chunkOf(chunks, chunk.task);
  if (before?.kind === chunk.kind && before.id === chunk.id) return chunks;
  return [...(withoutChunk(chunks, chunk.task) ?? []), chunk].slice(-MAX_CHUNKED);
}

/** @returns the same list if the task has told nothing in chunks */
export function withoutChunk(chunks: Chunks, task: string | null): Chunks {
  if (chunkOf(chunks, task) === undefined) return chunks;
  const others = chunks?.filter((chunk) => chunk.task !== task) ?? [];
  return others.length === 0 ? undefined : others;
}
