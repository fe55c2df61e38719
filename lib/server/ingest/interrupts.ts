import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { pickId } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import { MAX_NAMED, MAX_TIME } from '@interlude/protocol/limits';

/** What a run that ended waits for, as far as it says. */
export interface Interrupt {
  /** Null if it has none, or one that is none. */
  id: string | null;
  /** The tool call that it is about. */
  callId: string | null;
  /** It asks whether a tool may run. */
  isApproval: boolean;
  message: string | null;
  reason: string | null;
  /** Epoch milliseconds. */
  expiresAt: number | null;
}

/** An answer to an interrupt, in the input of the run that goes on from it. */
export interface Resumption {
  /** Null if it does not say which interrupt it answers. */
  interruptId: string | null;
  status: 'resolved' | 'denied' | 'cancelled';
}

/**
 * What a RUN_FINISHED waits for: at most MAX_NAMED interrupts, each id once. Older agents nest them deeper, or send a
 * single one.
 *
 * @see AG-UI 1.0.0, `Interrupt`: `toolCallId` is "the tool call this interrupt concerns, when it is a tool approval"
 */
export function interruptsOf(event: AgUiEvent): Interrupt[] {
  const outcome = fieldsOf(event.outcome);
  if (outcome.type === 'success' || outcome.type === 'cancelled') return [];
  const said = [outcome.interrupts, outcome.interrupt, event.interrupts, event.interrupt].map(interruptList);
  const found = (said.find((list) => list.length > 0) ?? []).slice(0, MAX_NAMED).filter(isObject).map(interruptOf);
  const ids = new Set<string>();
  return found.filter(({ id }) => id === null || (!ids.has(id) && ids.add(id)));
}

function interruptList(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  if (!isObject(value)) return [];
  return Array.isArray(value.interrupts) ? value.interrupts : [value];
}

function interruptOf(said: Fields): Interrupt {
  const callId = pickId(said, 'toolCallId', 'tool_call_id');
  const reason = textOf(said.reason);
  return {
    id: pickId(said, 'id'),
    callId,
    isApproval: callId !== null || reason === 'tool_call',
    message: textOf(said.message),
    reason,
    expiresAt: timeOf(said.expiresAt ?? said.expires_at),
  };
}

/** The interrupts that the input of a RUN_STARTED answers: at most MAX_NAMED. */
export function resumptionsOf(event: AgUiEvent): Resumption[] {
  const { resume } = fieldsOf(event.input);
  const said = isObject(resume) ? [resume] : listOf(resume);
  return said
    .slice(0, MAX_NAMED)
    .filter(isObject)
    .map((entry) => {
      const isDenied = fieldsOf(entry.payload).approved === false;
      const status = entry.status === 'cancelled' ? 'cancelled' : isDenied ? 'denied' : 'resolved';
      return { interruptId: pickId(entry, 'interruptId', 'interrupt_id'), status };
    });
}

/** The calls whose results end the input of a RUN_STARTED, among a person's messages: at most MAX_NAMED. */
export function inputResults(event: AgUiEvent): string[] {
  const found: string[] = [];
  for (const message of listOf(fieldsOf(event.input).messages).slice(-MAX_NAMED).reverse()) {
    const said = fieldsOf(message);
    const callId = said.role === 'tool' ? pickId(said, 'toolCallId') : null;
    if (callId !== null) found.push(callId);
    else if (said.role !== 'user' && said.role !== 'tool') break;
  }
  return found;
}

/** AG-UI leaves the form open, and its convention is ISO 8601. */
function timeOf(said: unknown): number | null {
  const time = typeof said === 'string' ? Date.parse(said) : said;
  return typeof time === 'number' && time >= 0 && time <= MAX_TIME ? time : null;
}
