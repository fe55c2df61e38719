import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { cutText } from '@/lib/protocol/cut-text';
import { MAX_CAPTION, MAX_ID_LENGTH, MAX_NAMED, MAX_TIME } from '@/lib/protocol/limits';

/** Tolerant access to the fields of a stored event: agents send more, less and other than the schema says. */

export function textField(event: AgUiEvent, field: string): string | null {
  const value = event[field];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** An id of what the event is about. What is too long to be remembered is no id: such an event is stored, not shown. */
export function idField(event: AgUiEvent, field: string): string | null {
  return idOrNull(textField(event, field));
}

function idOrNull(text: string | null): string | null {
  return text !== null && text.length <= MAX_ID_LENGTH ? text : null;
}

/** Ids that an event names, as far as they are kept. */
export function idList(value: unknown): string[] {
  return stringList(Array.isArray(value) ? value.slice(0, MAX_NAMED) : value).map((id) => cutText(id, MAX_ID_LENGTH));
}

/** The beginning of a text that stands beside what it is about. Never half a character. */
export function caption(text: string | null): string | null {
  return text === null ? null : cutText(text, MAX_CAPTION);
}

/** What a subagent says belongs to its task. AG-UI's own field wins. */
export function subagentTaskId(event: AgUiEvent): string | null {
  return textField(event, 'subagentRunId')?.slice(0, MAX_ID_LENGTH) ?? null;
}

/** The name of a CUSTOM event, else null. */
export function customName(event: AgUiEvent): string | null {
  return event.type === 'CUSTOM' ? textField(event, 'name') : null;
}

/** `value` of a CUSTOM event as an object; an empty one where it is none. */
export function customValue(event: AgUiEvent): Record<string, unknown> {
  const value = event.value;
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** A field under any of its names: agents write snake_case, Interlude's own records camelCase. */
export function pick(value: Record<string, unknown>, ...names: string[]): unknown {
  for (const name of names) if (value[name] !== undefined && value[name] !== null) return value[name];
  return undefined;
}

export function pickText(value: Record<string, unknown>, ...names: string[]): string | null {
  const found = pick(value, ...names);
  return typeof found === 'string' ? found : null;
}

/** Beyond ±2^53 a number is no count and no time, and a database hands no such integer back: it says nothing. */
export function pickNumber(value: Record<string, unknown>, ...names: string[]): number | null {
  const found = pick(value, ...names);
  return typeof found === 'number' && Math.abs(found) <= Number.MAX_SAFE_INTEGER ? found : null;
}

/** Epoch milliseconds that a Date can hold. */
export function pickTime(value: Record<string, unknown>, ...names: string[]): number | null {
  const found = pickNumber(value, ...names);
  return found !== null && found >= 0 && found <= MAX_TIME ? found : null;
}

export function pickId(value: Record<string, unknown>, ...names: string[]): string | null {
  return idOrNull(pickText(value, ...names));
}

export function stringList(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : [];
}

/** The text of an AG-UI content: a string, or the text parts of a list. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? '' : JSON.stringify(content);
  return content
    .map((part) => textOfPart(part))
    .filter((text) => text !== '')
    .join('\n');
}

function textOfPart(part: unknown): string {
  if (typeof part !== 'object' || part === null || !('text' in part)) return '';
  return typeof part.text === 'string' ? part.text : JSON.stringify(part.text);
}

/** The task a `task:*` event is about, else null. */
export function taskEventId(event: AgUiEvent): string | null {
  const name = customName(event);
  if (name === null || !name.startsWith('task:')) return null;
  return pickId(customValue(event), 'task_id', 'taskId');
}

/**
 * The user messages a run was started with: those at the end of its input, after the last message that is not a
 * person's, at most MAX_NAMED. What stands before them is history.
 */
export function inputUserMessages(event: AgUiEvent): { id: string; text: string }[] {
  const input = event.input;
  if (typeof input !== 'object' || input === null) return [];
  const messages = (input as { messages?: unknown }).messages;
  if (!Array.isArray(messages)) return [];
  const found: { id: string; text: string }[] = [];
  for (let index = messages.length - 1; index >= 0 && found.length < MAX_NAMED; index--) {
    const message = messages[index] as { id?: unknown; role?: unknown; content?: unknown } | null;
    if (message?.role !== 'user' || typeof message.id !== 'string') break;
    if (message.id.length <= MAX_ID_LENGTH) found.push({ id: message.id, text: contentText(message.content) });
  }
  return found.reverse();
}
