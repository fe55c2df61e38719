import type { AgUiEvent, ServedEvent, ServedPart } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { isObject, textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';

import type { PartKind } from './client-parts';

const NAMES = {
  text: { type: 'TEXT_MESSAGE', content: 'CONTENT', id: 'messageId' },
  thought: { type: 'REASONING_MESSAGE', content: 'CONTENT', id: 'messageId' },
  call: { type: 'TOOL_CALL', content: 'ARGS', id: 'toolCallId' },
} as const;

const ROLES = ['developer', 'system', 'assistant', 'user'] as const;

/**
 * The start of a part, with the fields that strict clients require.
 *
 * @param event the part's first event, of any type
 */
export function partStart(
  kind: PartKind,
  id: string,
  event: AgUiEvent,
  { subagentRunId, parentMessageId }: { subagentRunId?: string; parentMessageId?: string },
): ClientEvent {
  const start = { type: `${NAMES[kind].type}_START`, [NAMES[kind].id]: id, subagentRunId, metadata: metadataOf(event) };
  if (kind === 'thought') return { ...start, role: 'reasoning' };
  if (kind === 'call') return { ...start, toolCallName: textOf(event.toolCallName) ?? 'tool', parentMessageId };
  const role = ROLES.find((known) => known === event.role) ?? 'assistant';
  return { ...start, role, name: textOf(event.name) ?? undefined };
}

export function partContent(kind: PartKind, id: string, delta: string): ClientEvent {
  const { type, content, id: name } = NAMES[kind];
  return { type: `${type}_${content}`, [name]: id, delta };
}

/** @param event the event that ends the part; null if another event implies the end */
export function partEnd(kind: PartKind, id: string, event: AgUiEvent | null): ClientEvent {
  return {
    type: `${NAMES[kind].type}_END`,
    [NAMES[kind].id]: id,
    metadata: event === null ? undefined : metadataOf(event),
  };
}

/** An event's metadata for a client: every field, but within `interlude` only the PART fields. */
function metadataOf(event: AgUiEvent): ClientEvent['metadata'] {
  if (!isObject(event.metadata)) return undefined;
  const { interlude: _, ...others } = event.metadata;
  const known = readInterlude(event);
  const kept = Object.fromEntries(PART.flatMap((field) => (known[field] === undefined ? [] : [[field, known[field]]])));
  if (Object.keys(kept).length > 0) return { ...others, interlude: kept };
  return Object.keys(others).length === 0 ? undefined : others;
}

const PART = ['attachments', 'clientId', 'delivery', 'from', 'replyTo'] as const satisfies (keyof ServedPart)[];

export type ClientEvent = ServedEvent;

/** The client's protocol version. Clients send it in their input from 1.0 on. */
export type Dialect = '1.0' | '0.0.59';

/** An AG-UI interrupt: the agent waits for a person. `responseSchema` is JSON Schema, `expiresAt` ISO 8601. */
export interface Interrupt {
  id: string;
  reason: string;
  message?: string;
  toolCallId?: string;
  responseSchema?: Record<string, unknown>;
  expiresAt?: string;
  metadata?: Record<string, unknown>;
}

export type Outcome =
  | { type: 'success' }
  | { type: 'cancelled' }
  | { type: 'interrupt'; interrupts: readonly Interrupt[] };

/**
 * An event outside messages, with the fields that strict clients require; null if clients must not receive it. An
 * unknown type becomes RAW, because 0.0.59 rejects unknown types.
 */
export function clientEvent(event: AgUiEvent): ClientEvent | null {
  const read = Object.hasOwn(OTHERS, event.type) ? OTHERS[event.type] : undefined;
  if (read !== undefined) return read(event);
  return { type: 'RAW', event, source: 'interlude' };
}

/** The end of a step, span or subagent. @param event the event that ends it; null if the end of the run does */
export function bracketEnd(start: ClientEvent, event: AgUiEvent | null): ClientEvent {
  const { stepName, messageId, subagentRunId } = start;
  const end = { type: ENDS[start.type] ?? '', stepName, messageId, subagentRunId };
  if (event?.type !== 'SUBAGENT_ERROR') return end;
  const message = textOf(event.message) ?? 'The subagent failed.';
  return { ...end, type: event.type, message, code: textOf(event.code) ?? undefined };
}

const ENDS: Record<string, string | undefined> = {
  STEP_STARTED: 'STEP_FINISHED',
  REASONING_START: 'REASONING_END',
  SUBAGENT_STARTED: 'SUBAGENT_FINISHED',
};

const OTHERS: Record<string, (event: AgUiEvent) => ClientEvent | null> = {
  // A snapshot would replace the client's own messages. The snapshot's new messages follow in the log as chunks.
  MESSAGES_SNAPSHOT: () => null,
  STEP_STARTED: (event) => named(event, 'stepName', 'subagentRunId'),
  REASONING_START: (event) => named(event, 'messageId', 'subagentRunId'),
  SUBAGENT_STARTED: (event) => ({
    ...named(event, 'subagentRunId', 'description', 'parentSubagentRunId', 'parentToolCallId', 'parentMessageId'),
    name: textOf(event.name) ?? textOf(event.subagentRunId),
  }),
  CUSTOM: (event) => {
    const name = textOf(event.name);
    // A task's output is available from its own route.
    if (name === null || name === CUSTOM.taskOutput) return null;
    return { type: 'CUSTOM', name, value: event.value ?? null };
  },
  RAW: (event) => ({ type: 'RAW', event: event.event ?? null, source: textOf(event.source) ?? undefined }),
  STATE_SNAPSHOT: (event) => ({ type: 'STATE_SNAPSHOT', snapshot: event.snapshot ?? null }),
  STATE_DELTA: (event) => (isJsonPatch(event.delta) ? { type: 'STATE_DELTA', delta: event.delta } : null),
  ACTIVITY_SNAPSHOT: (event) => {
    const [messageId, activityType] = [textOf(event.messageId), textOf(event.activityType)];
    if (messageId === null || activityType === null || !isObject(event.content)) return null;
    const replace = event.replace !== false;
    return { type: 'ACTIVITY_SNAPSHOT', messageId, activityType, content: event.content, replace };
  },
  ACTIVITY_DELTA: (event) => {
    const [messageId, activityType] = [textOf(event.messageId), textOf(event.activityType)];
    if (messageId === null || activityType === null || !isJsonPatch(event.patch)) return null;
    return { type: 'ACTIVITY_DELTA', messageId, activityType, patch: event.patch };
  },
  REASONING_ENCRYPTED_VALUE: (event) => {
    const { subtype, entityId, encryptedValue } = event;
    if (subtype !== 'tool-call' && subtype !== 'message') return null;
    if (typeof entityId !== 'string' || typeof encryptedValue !== 'string') return null;
    return { type: 'REASONING_ENCRYPTED_VALUE', subtype, entityId, encryptedValue };
  },
};

function named(event: AgUiEvent, ...fields: string[]): ClientEvent {
  const texts = fields.map((field) => [field, textOf(event[field]) ?? undefined]);
  return { ...Object.fromEntries(texts), type: event.type };
}

const NEEDS: Record<string, string> = {
  add: 'value',
  replace: 'value',
  test: 'value',
  remove: 'path',
  move: 'from',
  copy: 'from',
};

/** @see RFC 6902 */
function isJsonPatch(value: unknown): value is object[] {
  return Array.isArray(value) && value.every(isOperation);
}

function isOperation(value: unknown): boolean {
  if (!isObject(value) || typeof value.op !== 'string' || typeof value.path !== 'string') return false;
  const needed = Object.hasOwn(NEEDS, value.op) ? NEEDS[value.op] : undefined;
  if (needed === undefined || !(needed in value)) return false;
  return needed !== 'from' || typeof value.from === 'string';
}
