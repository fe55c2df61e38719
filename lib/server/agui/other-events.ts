import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { isObject, textOf } from '@interlude/protocol/fields';
import type { StrictEvent } from './strict-event';

/**
 * An event that is not part of a message, with the fields that strict clients know; null if it is not for clients. An event
 * of an unknown type becomes RAW, because 0.0.59 refuses a stream with unknown types.
 */
export function otherEvent(event: AgUiEvent): StrictEvent | null {
  const read = Object.hasOwn(OTHERS, event.type) ? OTHERS[event.type] : undefined;
  if (read !== undefined) return read(event);
  return { type: 'RAW', event, source: 'interlude' };
}

/** The end of a step, span or subagent. @param event the one that ends it; null where its run ends */
export function bracketEnd(begun: StrictEvent, event: AgUiEvent | null): StrictEvent {
  const { stepName, messageId, subagentRunId } = begun;
  const end = { type: ENDS[begun.type] ?? '', stepName, messageId, subagentRunId };
  if (event?.type !== 'SUBAGENT_ERROR') return end;
  const message = textOf(event.message) ?? 'The subagent failed.';
  return { ...end, type: event.type, message, code: textOf(event.code) ?? undefined };
}

const ENDS: Record<string, string | undefined> = {
  STEP_STARTED: 'STEP_FINISHED',
  REASONING_START: 'REASONING_END',
  SUBAGENT_STARTED: 'SUBAGENT_FINISHED',
};

const OTHERS: Record<string, (event: AgUiEvent) => StrictEvent | null> = {
  // It would take the place of the client's own messages. What is new in it follows in the log, as chunks.
  MESSAGES_SNAPSHOT: () => null,
  STEP_STARTED: (event) => named(event, 'stepName', 'subagentRunId'),
  REASONING_START: (event) => named(event, 'messageId', 'subagentRunId'),
  SUBAGENT_STARTED: (event) => ({
    ...named(event, 'subagentRunId', 'description', 'parentSubagentRunId', 'parentToolCallId', 'parentMessageId'),
    name: textOf(event.name) ?? textOf(event.subagentRunId),
  }),
  CUSTOM: (event) => {
    const name = textOf(event.name);
    // a task's output is read from its own route
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

function named(event: AgUiEvent, ...fields: string[]): StrictEvent {
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
