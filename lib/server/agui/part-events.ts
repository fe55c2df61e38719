import type { AgUiEvent, ServedPart } from '@interlude/protocol/ag-ui';
import { isObject, textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import type { PartKind } from './client-parts';
import type { StrictEvent } from './strict-event';

const NAMES = {
  text: { type: 'TEXT_MESSAGE', content: 'CONTENT', id: 'messageId' },
  thought: { type: 'REASONING_MESSAGE', content: 'CONTENT', id: 'messageId' },
  call: { type: 'TOOL_CALL', content: 'ARGS', id: 'toolCallId' },
} as const;

const ROLES = ['developer', 'system', 'assistant', 'user'] as const;

/**
 * The beginning of a part, with the fields that strict clients know.
 *
 * @param event the first of the part that is written, whatever its type
 */
export function startOf(
  kind: PartKind,
  id: string,
  event: AgUiEvent,
  { subagentRunId, parentMessageId }: { subagentRunId?: string; parentMessageId?: string },
): StrictEvent {
  const begun = { type: `${NAMES[kind].type}_START`, [NAMES[kind].id]: id, subagentRunId, metadata: metadataOf(event) };
  if (kind === 'thought') return { ...begun, role: 'reasoning' };
  if (kind === 'call') return { ...begun, toolCallName: textOf(event.toolCallName) ?? 'tool', parentMessageId };
  const role = ROLES.find((known) => known === event.role) ?? 'assistant';
  return { ...begun, role, name: textOf(event.name) ?? undefined };
}

export function contentOf(kind: PartKind, id: string, delta: string): StrictEvent {
  const { type, content, id: name } = NAMES[kind];
  return { type: `${type}_${content}`, [name]: id, delta };
}

/** @param event its own end; null if it ends with something else */
export function endOf(kind: PartKind, id: string, event: AgUiEvent | null): StrictEvent {
  return {
    type: `${NAMES[kind].type}_END`,
    [NAMES[kind].id]: id,
    metadata: event === null ? undefined : metadataOf(event),
  };
}

/** What stays on the client’s message; the rest is about the event, or is not for clients. */
function metadataOf(event: AgUiEvent): StrictEvent['metadata'] {
  if (!isObject(event.metadata)) return undefined;
  const { interlude: _, ...others } = event.metadata;
  const known = readInterlude(event);
  const said = Object.fromEntries(PART.flatMap((field) => (known[field] === undefined ? [] : [[field, known[field]]])));
  if (Object.keys(said).length > 0) return { ...others, interlude: said };
  return Object.keys(others).length === 0 ? undefined : others;
}

const PART = ['attachments', 'clientId', 'delivery', 'from', 'replyTo'] as const satisfies (keyof ServedPart)[];
