import type { AgUiEvent, FileEdit } from '@interlude/protocol/ag-ui';
import { compact } from '@interlude/protocol/fields';
import { withInterlude } from '@interlude/protocol/interlude-metadata';
import { deltasOf, fittingText, jsonBytes } from './long-text';

/** Most bytes of all edits of one call, as JSON. */
const MAX_EDITS_BYTES = 128 * 1024;

export interface TextAbout {
  /** The messages it answers. */
  replyTo?: string[];
  /** The agent names it with each delta: other texts and calls may come in between. It ends with its END or its turn. */
  staysOpen?: true;
  /** The native message, where it holds more than its text. */
  rawEvent?: unknown;
}

export interface ResultAbout {
  isError?: boolean;
  edits?: FileEdit[];
  /** By default made of the call's id. */
  messageId?: string;
  rawEvent?: unknown;
}

export interface UserMessageAbout {
  /** Who sent it. */
  name?: string;
  /** The native message, where it holds more than its text. */
  rawEvent?: unknown;
}

interface Text {
  kind: 'text' | 'thought';
  /** Its id in the log. */
  id: string;
}

export function textStart({ kind, id: messageId }: Text, { replyTo }: TextAbout): AgUiEvent[] {
  if (kind === 'thought') {
    return [
      { type: 'REASONING_START', messageId },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
    ];
  }
  const reply = replyTo === undefined ? {} : { metadata: { interlude: { replyTo } } };
  return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...reply }];
}

/** Marks an event of a subagent with its task, and with the task's run if the agent names one. */
export function ofTask(event: AgUiEvent, taskId: string | null, runId: string | null): AgUiEvent {
  const marked = taskId === null ? event : { ...event, subagentRunId: taskId };
  return runId === null ? marked : withInterlude(marked, { taskRunId: runId });
}

/** @param isWhole it replaces the text so far */
export function textContent({ kind, id: messageId }: Text, text: string, isWhole: boolean, raw: object): AgUiEvent[] {
  const type = kind === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT';
  return partsOf({ type, messageId }, text, isWhole).map((part) => ({ ...part, ...raw }));
}

export function textEnd({ kind, id: messageId }: Text): AgUiEvent[] {
  if (kind === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId }];
  return [
    { type: 'REASONING_MESSAGE_END', messageId },
    { type: 'REASONING_END', messageId },
  ];
}

/** A message to the agent, from a person or another agent, or the prompt of a subagent. */
export function userMessage(messageId: string, text: string, { name, ...raw }: UserMessageAbout): AgUiEvent[] {
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'user', ...compact({ name }) },
    ...deltasOf(text).map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta, ...raw })),
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
}

/** @param isWhole they replace the arguments so far */
export function callArgs(toolCallId: string, args: string, isWhole: boolean): AgUiEvent[] {
  return partsOf({ type: 'TOOL_CALL_ARGS', toolCallId }, args, isWhole);
}

export function callResult(toolCallId: string, content: string, about: ResultAbout): AgUiEvent {
  const { isError = false, edits = [], messageId = `${toolCallId}/result`, ...raw } = about;
  return {
    type: 'TOOL_CALL_RESULT',
    messageId,
    toolCallId,
    content: fittingText(content),
    role: 'tool',
    ...(isError ? { isError } : {}),
    ...(edits.length > 0 ? { metadata: { interlude: { edits: fittingEdits(edits) } } } : {}),
    ...raw,
  };
}

function partsOf(event: AgUiEvent, text: string, isWhole: boolean): AgUiEvent[] {
  const whole = { metadata: { interlude: { whole: true as const } } };
  return deltasOf(text).map((delta, at) => ({ ...event, delta, ...(isWhole && at === 0 ? whole : {}) }));
}

/** As many edits as fit, and always the first. */
function fittingEdits(edits: readonly FileEdit[]): FileEdit[] {
  let left = MAX_EDITS_BYTES;
  return edits.flatMap(({ path, before, after }) => {
    if (left <= 0) return [];
    const edit = { path, before: fittingText(before, left / 2), after: fittingText(after, left / 2) };
    left -= jsonBytes(path) + jsonBytes(edit.before) + jsonBytes(edit.after);
    return [edit];
  });
}
