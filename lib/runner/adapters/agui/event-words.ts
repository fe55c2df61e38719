import type { TurnTrigger } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { fittingText } from '../writer/long-text';
import type { TurnEnd } from '../writer/session-writer';

/** What the events of AG-UI servers say of runs, in any of their spellings. */

/** What the words of a failure may take as JSON. */
const MAX_REASON = 64 * 1024;

export function isAboutTask({ type, name }: Fields): boolean {
  return type === 'CUSTOM' && typeof name === 'string' && name.startsWith('task:');
}

/** Ambient's runner writes some of its events in snake_case. */
export function runOf(event: Fields): string | null {
  const run = textOf(event.runId) ?? textOf(event.run_id);
  return run === null ? null : truncateText(run, MAX_ID_LENGTH);
}

export function threadOf(event: Fields): string | null {
  return textOf(event.threadId) ?? textOf(event.thread_id);
}

/** The cause that a server names for a turn. Only Interlude itself says what it woke, and of which session. */
export function triggerIn({ metadata }: Fields): TurnTrigger | null {
  const said = readInterlude({ type: 'RUN_STARTED', metadata: fieldsOf(metadata) });
  const { wokenBy, ofSessionIds, ...trigger } = said.trigger ?? { kind: 'unknown' as const, taskIds: [] };
  return trigger.kind === 'unknown' ? null : trigger;
}

export function endOf({ type, outcome, result, message, code }: Fields, isInterrupted: boolean): TurnEnd {
  const how = fieldsOf(outcome).type;
  if (isInterrupted || how === 'cancelled') return { kind: 'cancelled' };
  if (type === 'RUN_ERROR') {
    const said = textOf(message) ?? 'The agent says that this turn failed, and not why.';
    const name = textOf(code);
    return { kind: 'failed', message: fittingText(said, MAX_REASON), ...(name === null ? {} : { code: name }) };
  }
  // A synthetic turn that failed ends so in Ambient's runner.
  if (how === 'error' || how === 'failed' || fieldsOf(result).is_error === true) {
    const said = textOf(fieldsOf(result).error) ?? textOf(fieldsOf(outcome).message);
    return { kind: 'failed', message: fittingText(said ?? 'The agent says that this turn failed.', MAX_REASON) };
  }
  return { kind: 'success' };
}

/** @param from, to epoch milliseconds */
export function unheardNotice(from: number, to: number): string {
  const [began, ended] = [from, to].map((at) => new Date(at).toISOString().slice(0, 19).replace('T', ' '));
  const until = began?.slice(0, 10) === ended?.slice(0, 10) ? ended?.slice(11) : ended;
  return `The agent was not heard from ${began} to ${until} UTC. Events from that time may be missing here.`;
}

export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  const parts = Array.isArray(content) ? content.map((part) => textOf(fieldsOf(part).text) ?? '') : [];
  return parts.filter((text) => text !== '').join('\n');
}
