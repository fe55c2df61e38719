import type { AgUiEvent } from '../ag-ui';
import { contentText, subagentTaskId } from '../event-fields';
import { isId, isObject } from '../fields';

/** A part of a MESSAGES_SNAPSHOT: the text of a message or thought, or the arguments or result of a tool call. */
export interface SnapshotPart {
  kind: 'text' | 'reasoning' | 'call' | 'result';
  /** Id of the message, thought or tool call. */
  id: string;
  text: string;
  /** Other fields of the resulting event. */
  fields: Record<string, unknown>;
}

/**
 * The parts of a snapshot in order. A repeated part keeps its first place and last content. Skips empty texts, activities
 * and subagents' snapshots, whose texts arrive as events.
 */
export function snapshotParts(event: AgUiEvent): SnapshotPart[] {
  if (event.type !== 'MESSAGES_SNAPSHOT' || !Array.isArray(event.messages) || subagentTaskId(event) !== null) return [];
  const parts = new Map<string, SnapshotPart>();
  for (const message of event.messages) for (const part of partsOf(message)) parts.set(`${part.kind} ${part.id}`, part);
  return [...parts.values()];
}

/** The newest parts of a snapshot that fit into `room`, which shrinks accordingly. @param isTaken filters by id */
export function partsWithin(
  room: { left: number },
  event: AgUiEvent,
  isTaken: (id: string) => boolean = () => true,
): readonly SnapshotPart[] {
  const all = snapshotParts(event).filter(({ id }) => isTaken(id));
  const parts = all.slice(Math.max(0, all.length - room.left));
  room.left -= parts.length;
  return parts;
}

/** @param turnId the turn that has the part; null for a new part */
export function snapshotEvent({ kind, id, text, fields }: SnapshotPart, turnId: string | null): AgUiEvent {
  const metadata = { interlude: { whole: true as const, ofSnapshot: { turnId } } };
  switch (kind) {
    case 'text':
      return { type: 'TEXT_MESSAGE_CHUNK', messageId: id, delta: text, ...fields, metadata };
    case 'reasoning':
      return { type: 'REASONING_MESSAGE_CHUNK', messageId: id, delta: text, ...fields, metadata };
    case 'call':
      return { type: 'TOOL_CALL_CHUNK', toolCallId: id, delta: text, ...fields, metadata };
    case 'result':
      return { type: 'TOOL_CALL_RESULT', toolCallId: id, content: text, ...fields, metadata };
  }
}

/**
 * Records that a part is known under another id, as the end of a text without a start: it shows nothing, and the next
 * snapshot finds it by the part's own id.
 *
 * @param sameAs `text <id>`, `reasoning <id>` or `tool <id>`
 */
export function aliasEvent({ id }: SnapshotPart, turnId: string, sameAs: string): AgUiEvent {
  return { type: 'TEXT_MESSAGE_END', messageId: id, metadata: { interlude: { ofSnapshot: { turnId, sameAs } } } };
}

const ROLES: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system', 'developer']);

function* partsOf(message: unknown): Generator<SnapshotPart> {
  if (!isObject(message)) return;
  const { id, role, content, name, toolCallId, toolCalls, error } = message;
  if (role === 'tool' && isId(toolCallId)) {
    const failed = error === undefined ? {} : { error };
    const text = contentText(content);
    yield { kind: 'result', id: toolCallId, text, fields: { ...(isId(id) ? { messageId: id } : {}), ...failed } };
  }
  if (!isId(id)) return;
  const text = contentText(content);
  if (role === 'reasoning' && text !== '') yield { kind: 'reasoning', id, text, fields: {} };
  if (!ROLES.has(role)) return;
  const named = typeof name === 'string' ? { name } : {};
  if (text !== '') yield { kind: 'text', id, text, fields: { role, ...named } };
  if (role !== 'assistant' || !Array.isArray(toolCalls)) return;
  for (const call of toolCalls) {
    if (!isObject(call) || !isId(call.id) || !isObject(call.function)) continue;
    const { name: toolCallName, arguments: args } = call.function;
    const fields = { parentMessageId: id, ...(typeof toolCallName === 'string' ? { toolCallName } : {}) };
    yield { kind: 'call', id: call.id, text: contentText(args), fields };
  }
}
