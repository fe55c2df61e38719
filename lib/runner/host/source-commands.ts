import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { CommandOutcome } from './seen-commands';
import type { CommandOf, Source, SourceContext } from './source';

/** Parts of command handling that all sources share. */

export function failed(reason: string): CommandOutcome {
  return { state: 'failed', reason };
}

/** @param refusal null if the command succeeded */
export function outcomeOf(refusal: string | null): CommandOutcome {
  return refusal === null ? { state: 'done' } : failed(refusal);
}

/** Text as the agent gets it: a message from another agent names its sender. */
export function messageText({ from, text }: CommandOf<'message'>['body']): string {
  return from.kind === 'agent' ? `Message from the agent ${from.id}:\n\n${text}` : text;
}

/**
 * @param turnId the turn that the person wanted to interrupt, if named
 * @param runningId the open turn
 * @returns the reason why the interrupt no longer applies, or null
 */
export function staleInterrupt(turnId: string | undefined, runningId: string | null, agent = 'the agent') {
  if (turnId === undefined || turnId === runningId) return null;
  const now = runningId === null ? 'nothing is running now' : `${agent} has started another one, which continues`;
  return failed(`that turn has already ended; ${now}`);
}

/** Handles `session.end` in a source that runs a single session: the runner ends with it. */
export function endSessionHandler({ endRunner }: Pick<SourceContext, 'endRunner'>): NonNullable<Source['end']> {
  return async () => {
    endRunner('ended from the dashboard');
    return { state: 'done' };
  };
}

/** Transcript text after an interrupt. @param tasks background tasks, which continue @param waiting queued messages */
export function interruptNotice(hadTurn: boolean, tasks: readonly string[], waiting: number): string {
  const what = hadTurn ? 'The turn was interrupted.' : 'There was no turn to interrupt.';
  const running = tasks.length === 1 ? 'A background task continues' : `${tasks.length} background tasks continue`;
  const rest = tasks.length === 0 ? '' : ` ${running}: ${tasks.join(', ')}.`;
  const next = waiting === 1 ? ' One message is still queued and' : ` ${waiting} messages are still queued and`;
  return what + rest + (waiting === 0 ? '' : `${next} will be answered next.`);
}

export function noticeEvent(text: string, tone: 'info' | 'warning' | 'error', occurredAt = Date.now()): TimedEvent {
  return { occurredAt, event: { type: 'CUSTOM', name: CUSTOM.notice, value: { text, tone } } };
}
