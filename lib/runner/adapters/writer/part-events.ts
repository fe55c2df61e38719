import type { AgUiEvent, FileEdit, PlanEntry } from '@interlude/protocol/ag-ui';
import { compact, textOf } from '@interlude/protocol/fields';
import { withInterlude } from '@interlude/protocol/interlude-metadata';
import { jsonBytes, splitText, truncateWithNote } from './size-limits';

/** Limit for all edits of one call, bytes of JSON. */
const MAX_EDITS_BYTES = 128 * 1024;

export interface TextOptions {
  /** User messages that the text answers. */
  replyTo?: string[];
  /**
   * True if the agent names the part with each delta, so that other parts may interleave. The part ends with its END or
   * its turn.
   */
  staysOpen?: true;
  /** The native message, if it holds more than the text. */
  rawEvent?: unknown;
}

export interface ResultOptions {
  isError?: boolean;
  edits?: FileEdit[];
  /** Defaults to an id derived from the call's. */
  messageId?: string;
  rawEvent?: unknown;
}

export interface UserMessageOptions {
  /** Sender. */
  name?: string;
  /** The native message, if it holds more than the text. */
  rawEvent?: unknown;
}

interface Text {
  kind: 'text' | 'thought';
  /** Id in the log. */
  id: string;
}

export function textStart({ kind, id: messageId }: Text, { replyTo }: TextOptions): AgUiEvent[] {
  if (kind === 'thought') {
    return [
      { type: 'REASONING_START', messageId },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
    ];
  }
  const reply = replyTo === undefined ? {} : { metadata: { interlude: { replyTo } } };
  return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...reply }];
}

/** Marks an event of a subagent with its task and, if known, the task's run. */
export function ofTask(event: AgUiEvent, taskId: string | null, runId: string | null): AgUiEvent {
  const marked = taskId === null ? event : { ...event, subagentRunId: taskId };
  return runId === null ? marked : withInterlude(marked, { taskRunId: runId });
}

/** @param isWhole true to replace the text so far */
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

/** A message to the agent from a person or another agent, or a subagent's prompt. */
export function userMessage(messageId: string, text: string, { name, ...raw }: UserMessageOptions): AgUiEvent[] {
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'user', ...compact({ name }) },
    ...splitText(text).map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta, ...raw })),
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
}

/** @param isWhole true to replace the arguments so far */
export function callArgs(toolCallId: string, args: string, isWhole: boolean): AgUiEvent[] {
  return partsOf({ type: 'TOOL_CALL_ARGS', toolCallId }, args, isWhole);
}

export function callResult(toolCallId: string, content: string, about: ResultOptions): AgUiEvent {
  const { isError = false, edits = [], messageId = `${toolCallId}/result`, ...raw } = about;
  return {
    type: 'TOOL_CALL_RESULT',
    messageId,
    toolCallId,
    content: truncateWithNote(content),
    role: 'tool',
    ...(isError ? { isError } : {}),
    ...(edits.length > 0 ? { metadata: { interlude: { edits: fittingEdits(edits) } } } : {}),
    ...raw,
  };
}

function partsOf(event: AgUiEvent, text: string, isWhole: boolean): AgUiEvent[] {
  const whole = { metadata: { interlude: { whole: true as const } } };
  return splitText(text).map((delta, index) => ({ ...event, delta, ...(isWhole && index === 0 ? whole : {}) }));
}

/** Keeps as many edits as fit, at least the first. */
function fittingEdits(edits: readonly FileEdit[]): FileEdit[] {
  let budget = MAX_EDITS_BYTES;
  return edits.flatMap(({ path, before, after }) => {
    if (budget <= 0) return [];
    const edit = { path, before: truncateWithNote(before, budget / 2), after: truncateWithNote(after, budget / 2) };
    budget -= jsonBytes(path) + jsonBytes(edit.before) + jsonBytes(edit.after);
    return [edit];
  });
}

/** Receives the events of a part; the writer adds the time. */
export type Emit = (event: AgUiEvent) => void;

export function custom(name: string, value: object): AgUiEvent {
  return { type: 'CUSTOM', name, value };
}

const PLAN_STATUSES: ReadonlyMap<unknown, PlanEntry['status']> = new Map([
  ['in_progress', 'in_progress'],
  ['inProgress', 'in_progress'],
  ['completed', 'completed'],
]);

/** Reads a plan entry; unknown statuses count as pending. */
export function planEntry(content: unknown, status: unknown, priority: unknown = null): PlanEntry {
  const known = PLAN_STATUSES.get(status) ?? 'pending';
  return compact({ content: textOf(content) ?? '', status: known, priority: textOf(priority) ?? undefined });
}

/** Both sides of each hunk of a unified diff, as lines. */
export function hunksOf(diff: string): { before: string[]; after: string[] }[] {
  const hunks: { before: string[]; after: string[] }[] = [];
  for (const line of diff.split('\n')) {
    const hunk = hunks.at(-1);
    if (line.startsWith('@@')) hunks.push({ before: [], after: [] });
    else if (hunk !== undefined) {
      if (/^[- ]/.test(line)) hunk.before.push(line.slice(1));
      if (/^[+ ]/.test(line)) hunk.after.push(line.slice(1));
    }
  }
  return hunks;
}
