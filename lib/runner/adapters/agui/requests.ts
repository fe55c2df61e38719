import { QUESTION_TOOL } from '@interlude/protocol/event-fields';
import {
  compact,
  type Fields,
  fieldsOf,
  isObject,
  listOf,
  numberOf,
  parseJson,
  textOf,
} from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import type { SessionWriter } from '../writer/session-writer';
import { truncateWithNote } from '../writer/size-limits';
import { isTooDeep, newMessages, type RunInput } from './agui-frames';

const MAX_CALLS = 64;
const MAX_ARGS = 64 * 1024;
const MAX_INTERRUPTS = 100;
/** Bytes of JSON. */
const MAX_TITLE = 16 * 1024;

interface PendingCall {
  name: string;
  args: string;
}

/**
 * Requests of a finished run: its interrupts and its unanswered AskUserQuestion calls. The next run answers them with
 * `resume` or a `tool` message.
 */
export class RunRequests {
  readonly #writer: SessionWriter;
  readonly #calls = new Map<string, PendingCall>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  called(id: string, name: string): void {
    setBounded(this.#calls, id, { name, args: '' }, MAX_CALLS);
  }

  addArgs(id: string, delta: string): void {
    const call = this.#calls.get(id);
    if (call !== undefined && call.args.length <= MAX_ARGS) call.args += delta;
  }

  resultArrived(id: string): void {
    this.#calls.delete(id);
  }

  /** Handles the normal end of the run. */
  runFinished(event: Fields): void {
    for (const interrupt of interruptsIn(event)) this.#openInterrupt(interrupt);
    for (const [id, call] of this.#calls) {
      if (call.name === QUESTION_TOOL && !this.#writer.requests.isOpen(id)) this.#openQuestion(id, call);
    }
    this.#calls.clear();
  }

  /** Handles a run that was cut off: its questions need no answer. */
  runAborted(): void {
    this.#calls.clear();
  }

  /** Resolves earlier requests that the new run's input answers. */
  answeredBy({ messages, resume }: RunInput): void {
    for (const { interruptId, status, payload } of resume) {
      const id = textOf(interruptId);
      if (id === null) continue;
      const isDenied = fieldsOf(payload).approved === false;
      const good = this.#writer.requests.about(id)?.kind === 'question' ? 'answered' : 'allowed';
      this.#writer.resolved(id, status === 'cancelled' ? 'cancelled' : isDenied ? 'denied' : good);
    }
    for (const { role, toolCallId, content } of newMessages(messages)) {
      const id = textOf(toolCallId);
      if (role !== 'tool' || id === null) continue;
      this.#writer.resolved(id, 'answered');
      const parts = this.#writer.parts();
      if (parts.loggedCallId(id) !== null) parts.setResult(id, textOf(content) ?? '');
    }
  }

  #openInterrupt(interrupt: Fields): void {
    const id = textOf(interrupt.id);
    const callId = textOf(interrupt.toolCallId) ?? textOf(interrupt.tool_call_id);
    if (id === null || id.length > MAX_ID_LENGTH) {
      this.#writer.custom('agui:interrupt', { message: truncateWithNote(textOf(interrupt.message) ?? '', MAX_TITLE) });
      return;
    }
    const call = callId === null ? undefined : this.#calls.get(callId);
    const isQuestion = call?.name === QUESTION_TOOL || (callId === null && interrupt.reason !== 'tool_call');
    const input = call === undefined ? undefined : inputOf(call);
    const title = textOf(interrupt.message) ?? (isQuestion ? questionIn(input) : null) ?? textOf(interrupt.reason);
    const expiresAt = timeOf(interrupt.expiresAt ?? interrupt.expires_at);
    if (callId !== null) this.#calls.delete(callId);
    const value = {
      request_id: id,
      kind: isQuestion ? ('question' as const) : ('permission' as const),
      ...compact({ tool_use_id: callId ?? undefined, tool_name: call?.name, title: titleOf(title, isQuestion) }),
      ...(input === undefined ? {} : { input }),
      ...(expiresAt === null ? {} : { expires_at: expiresAt }),
    };
    this.#writer.requested(value, true);
  }

  #openQuestion(id: string, call: PendingCall): void {
    const input = inputOf(call);
    const value = {
      request_id: id,
      kind: 'question' as const,
      tool_use_id: id,
      tool_name: call.name,
      title: titleOf(questionIn(input), true) ?? 'The agent asks',
      ...(input === undefined ? {} : { input }),
    };
    this.#writer.requested(value, true);
  }
}

/** Reads the interrupts of a finished run. Older servers use other shapes or send a single interrupt. */
function interruptsIn({ outcome, interrupts, interrupt }: Fields): Fields[] {
  const nested = fieldsOf(outcome);
  if (nested.type === 'success' || nested.type === 'cancelled') return [];
  const lists = [nested.interrupts, nested.interrupt, interrupts, interrupt].map((one) =>
    Array.isArray(one) ? one : isObject(one) ? [one] : [],
  );
  const found = lists.find((list) => list.length > 0) ?? [];
  return found.slice(0, MAX_INTERRUPTS).filter(isObject);
}

function inputOf({ args }: PendingCall): unknown {
  if (args === '' || args.length > MAX_ARGS) return undefined;
  const input = parseJson(args);
  return input === null || isTooDeep(input) ? args : input;
}

function titleOf(title: string | null, isQuestion: boolean): string | undefined {
  if (title === null) return isQuestion ? 'The agent asks' : undefined;
  return truncateWithNote(title, MAX_TITLE);
}

/** First question in the arguments of AskUserQuestion. */
function questionIn(input: unknown): string | null {
  const first = textOf(fieldsOf(listOf(fieldsOf(input).questions)[0]).question);
  return first ?? textOf(fieldsOf(input).question);
}

/** ISO 8601 or epoch milliseconds. */
function timeOf(value: unknown): number | null {
  const time = typeof value === 'string' ? Date.parse(truncateText(value, 64)) : numberOf(value);
  return time === null || Number.isNaN(time) ? null : time;
}
