import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { pickId } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import { MAX_NAMED, MAX_TIME } from '@interlude/protocol/limits';

/** A person's input that a finished run waits for. */
export interface Interrupt {
  /** Null if missing or invalid. */
  id: string | null;
  /** The tool call that the interrupt is about. */
  callId: string | null;
  /** True if the interrupt asks for permission to run a tool. */
  isApproval: boolean;
  message: string | null;
  reason: string | null;
  /** Epoch milliseconds. */
  expiresAt: number | null;
}

/** The answer to an interrupt, in the input of the run that continues from it. */
interface Resumption {
  /** Null if the input names no interrupt. */
  interruptId: string | null;
  status: 'resolved' | 'denied' | 'cancelled';
}

/**
 * Reads the interrupts of a RUN_FINISHED: at most MAX_NAMED, each id once. Older agents nest them deeper, or send a
 * single one.
 *
 * @see AG-UI 1.0.0, `Interrupt`: `toolCallId` is "the tool call this interrupt concerns, when it is a tool approval"
 */
export function interruptsOf(event: AgUiEvent): Interrupt[] {
  const outcome = fieldsOf(event.outcome);
  if (outcome.type === 'success' || outcome.type === 'cancelled') return [];
  const lists = [outcome.interrupts, outcome.interrupt, event.interrupts, event.interrupt].map(interruptList);
  const found = (lists.find((list) => list.length > 0) ?? []).slice(0, MAX_NAMED).filter(isObject).map(interruptOf);
  const ids = new Set<string>();
  return found.filter(({ id }) => id === null || (!ids.has(id) && ids.add(id)));
}

function interruptList(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  if (!isObject(value)) return [];
  return Array.isArray(value.interrupts) ? value.interrupts : [value];
}

function interruptOf(fields: Fields): Interrupt {
  const callId = pickId(fields, 'toolCallId', 'tool_call_id');
  const reason = textOf(fields.reason);
  return {
    id: pickId(fields, 'id'),
    callId,
    isApproval: callId !== null || reason === 'tool_call',
    message: textOf(fields.message),
    reason,
    expiresAt: timeOf(fields.expiresAt ?? fields.expires_at),
  };
}

/** Reads the interrupts that the input of a RUN_STARTED answers: at most MAX_NAMED. */
export function resumptionsOf(event: AgUiEvent): Resumption[] {
  const { resume } = fieldsOf(event.input);
  return (isObject(resume) ? [resume] : listOf(resume))
    .slice(0, MAX_NAMED)
    .filter(isObject)
    .map((entry) => {
      const isDenied = fieldsOf(entry.payload).approved === false;
      const status = entry.status === 'cancelled' ? 'cancelled' : isDenied ? 'denied' : 'resolved';
      return { interruptId: pickId(entry, 'interruptId', 'interrupt_id'), status };
    });
}

/** Reads the trailing tool results, mixed with user messages, of a RUN_STARTED's input: at most MAX_NAMED call ids. */
export function inputResults(event: AgUiEvent): string[] {
  const found: string[] = [];
  for (const message of listOf(fieldsOf(event.input).messages).slice(-MAX_NAMED).reverse()) {
    const { role, toolCallId } = fieldsOf(message);
    const callId = role === 'tool' ? pickId({ toolCallId }, 'toolCallId') : null;
    if (callId !== null) found.push(callId);
    else if (role !== 'user' && role !== 'tool') break;
  }
  return found;
}

/** AG-UI does not specify the format; its convention is ISO 8601. */
function timeOf(value: unknown): number | null {
  const time = typeof value === 'string' ? Date.parse(value) : value;
  return typeof time === 'number' && time >= 0 && time <= MAX_TIME ? time : null;
}
