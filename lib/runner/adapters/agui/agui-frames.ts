import type { TurnTrigger } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, isObject, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { MAX_ID_LENGTH, MAX_JSON_DEPTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import type { WireFrame } from '../wire';
import type { TurnEnd } from '../writer/session-writer';
import { truncateWithNote } from '../writer/size-limits';

/**
 * Frames between a runner and an AG-UI server. AG-UI events name neither their stream nor its end, so the frame does.
 *
 * | dir | msg |
 * |---|---|
 * | out | `{"method":"POST","path","body":RunAgentInput}`: starts a run |
 * | in | `{"stream":"run","runId","status","body"?}`: the response; `body` if refused |
 * | in | `{"stream":"run","runId","event"}`, `{"stream":"run","runId","ended":null\|"why","isAsked"?}` |
 * | in | `{"stream":"events","opened":"<path>","threadId","isOwn"?,"unheardSince"?}`: epoch milliseconds; set if events were missed |
 * | in | `{"stream":"events","event"}`, `{"stream":"events","ended":"why","isReopened"?}`: the runner is reopening it |
 * | out, in | `{"method":"POST","path":"…/interrupt"}`, `{"answer":"interrupt","status"}` |
 * | out, in | `{"method":"GET","path":"…/tasks","about":["t1"]}`, `{"answer":"tasks","status","body","isDeaf"?}`: `isDeaf` if the runner receives no events between runs |
 *
 * `text` replaces `event` for invalid JSON and holds its beginning.
 *
 * @see AG-UI 1.0.0, `RunAgentInput` and the events of `@ag-ui/core`
 */
export type AgUiFrame =
  | { kind: 'post'; input: RunInput }
  | { kind: 'answered'; stream: 'run'; runId: string; isAccepted: boolean }
  | {
      kind: 'opened';
      stream: 'events';
      runId: null;
      isOwn: boolean;
      threadId: string | null;
      unheardSince: number | null;
    }
  | { kind: 'event'; stream: StreamName; runId: string | null; event: Fields }
  | { kind: 'unreadable'; stream: StreamName; runId: string | null; what: unknown }
  | {
      kind: 'ended';
      stream: StreamName;
      runId: string | null;
      reason: string | null;
      isAsked: boolean;
      isReopened: boolean;
    }
  | { kind: 'interrupted' }
  | { kind: 'tasks-asked'; about: string[] }
  | { kind: 'tasks'; isKnown: boolean; isDeaf: boolean; body: unknown }
  | { kind: 'other' };

export type StreamName = 'run' | 'events';

export interface RunInput {
  threadId: string;
  runId: string;
  messages: Fields[];
  resume: Fields[];
}

export function frameOf({ dir, msg }: WireFrame): AgUiFrame {
  const fields = fieldsOf(msg);
  if (dir === 'out') return parseRequestFrame(fields);
  const { stream } = fields;
  if (stream === 'run' || stream === 'events') return parseStreamFrame(stream, fields);
  const status = numberOf(fields.status) ?? 0;
  const isGood = status >= 200 && status < 300;
  if (fields.answer === 'interrupt' && isGood) return { kind: 'interrupted' };
  if (fields.answer === 'tasks')
    return { kind: 'tasks', isKnown: isGood, isDeaf: fields.isDeaf === true, body: fields.body };
  return { kind: 'other' };
}

function parseRequestFrame({ method, body, about }: Fields): AgUiFrame {
  if (method === 'GET' && Array.isArray(about)) {
    return { kind: 'tasks-asked', about: about.filter((id): id is string => typeof id === 'string') };
  }
  const input = runInputOf(body);
  return method === 'POST' && input !== null ? { kind: 'post', input } : { kind: 'other' };
}

export function runInputOf(body: unknown): RunInput | null {
  const { threadId, runId, messages, resume } = fieldsOf(body);
  const [thread, run] = [textOf(threadId), textOf(runId)];
  if (thread === null || run === null || !Array.isArray(messages)) return null;
  return { threadId: thread, runId: run, messages: messages.map(fieldsOf), resume: listOf(resume).map(fieldsOf) };
}

function parseStreamFrame(stream: StreamName, fields: Fields): AgUiFrame {
  const { event, ended, opened } = fields;
  const runId = textOf(fields.runId);
  if (isObject(event)) return { kind: 'event', stream, runId, event };
  if (ended !== undefined) {
    const [isAsked, isReopened] = [fields.isAsked === true, fields.isReopened === true];
    return { kind: 'ended', stream, runId, reason: textOf(ended), isAsked, isReopened };
  }
  if (stream === 'events' && opened !== undefined) {
    const [isOwn, unheardSince] = [fields.isOwn === true, numberOf(fields.unheardSince)];
    return { kind: 'opened', stream, runId: null, isOwn, threadId: textOf(fields.threadId), unheardSince };
  }
  const status = numberOf(fields.status);
  if (stream === 'run' && runId !== null && status !== null) {
    return { kind: 'answered', stream, runId, isAccepted: status >= 200 && status < 300 };
  }
  return { kind: 'unreadable', stream, runId, what: fields.event ?? fields.text ?? fields };
}

/** Messages after the agent's last one: new input for the run. */
export function newMessages(messages: readonly Fields[]): Fields[] {
  const index = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.slice(index + 1);
}

/** Id of a `tool` message that answers a request; not a person's message. */
export function answerId(toolCallId: string): string {
  return `${toolCallId}/answer`;
}

/** Limit of a failure text, bytes of JSON. */
const MAX_REASON = 64 * 1024;

export function isAboutTask({ type, name }: Fields): boolean {
  return type === 'CUSTOM' && typeof name === 'string' && name.startsWith('task:');
}

/** Ambient's runner writes some events in snake_case. */
export function runOf(event: Fields): string | null {
  const run = textOf(event.runId) ?? textOf(event.run_id);
  return run === null ? null : truncateText(run, MAX_ID_LENGTH);
}

export function threadOf(event: Fields): string | null {
  return textOf(event.threadId) ?? textOf(event.thread_id);
}

/** Cause named by the server, without the fields that only Interlude may set: `wokenBy` and `ofSessionIds`. */
export function triggerOf({ metadata }: Fields): TurnTrigger | null {
  const interlude = readInterlude({ type: 'RUN_STARTED', metadata: fieldsOf(metadata) });
  const { wokenBy, ofSessionIds, ...trigger } = interlude.trigger ?? { kind: 'unknown' as const, taskIds: [] };
  return trigger.kind === 'unknown' ? null : trigger;
}

export function endOf({ type, outcome, result, message, code }: Fields, isInterrupted: boolean): TurnEnd {
  const how = fieldsOf(outcome).type;
  if (isInterrupted || how === 'cancelled') return { kind: 'cancelled' };
  if (type === 'RUN_ERROR') {
    const reason = textOf(message) ?? 'The agent reported a failure without a reason.';
    const name = textOf(code);
    return { kind: 'failed', message: truncateWithNote(reason, MAX_REASON), ...(name === null ? {} : { code: name }) };
  }
  // A failed synthetic turn of Ambient's runner ends like this.
  if (how === 'error' || how === 'failed' || fieldsOf(result).is_error === true) {
    const reason = textOf(fieldsOf(result).error) ?? textOf(fieldsOf(outcome).message);
    return { kind: 'failed', message: truncateWithNote(reason ?? 'The agent reported a failure.', MAX_REASON) };
  }
  return { kind: 'success' };
}

/** @param from, to epoch milliseconds */
export function silenceNotice(from: number, to: number): string {
  const [began, ended] = [from, to].map((at) => new Date(at).toISOString().slice(0, 19).replace('T', ' '));
  const until = began?.slice(0, 10) === ended?.slice(0, 10) ? ended?.slice(11) : ended;
  return `No signal from the agent between ${began} and ${until} UTC. Events from that time may be missing.`;
}

export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  const parts = Array.isArray(content) ? content.map((part) => textOf(fieldsOf(part).text) ?? '') : [];
  return parts.filter((text) => text !== '').join('\n');
}

const MAX_EVENT_DEPTH = MAX_JSON_DEPTH - 8;

/** True for a value so deep that it would overflow recursive readers. */
export function isTooDeep(value: unknown): boolean {
  return depthOf(value) > MAX_EVENT_DEPTH;
}

/** Iterative: the depth is untrusted. */
function depthOf(value: unknown): number {
  let [level, depth]: [unknown[], number] = [[value], 0];
  while (level.length > 0 && depth <= MAX_EVENT_DEPTH) {
    depth += 1;
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  }
  return depth;
}
