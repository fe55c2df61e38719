import { plainText } from '@/components/ui/ansi';
import { plural } from '@/components/ui/duration';
import type { SessionState, SessionSummary } from '@/lib/protocol/read-models';

export const STATE_WORD: Record<SessionState, string> = {
  failed: 'Failed',
  waiting: 'Waiting',
  working: 'Working',
  idle: 'Idle',
  done: 'Done',
};

/** The server keeps this much of a title. */
const TITLE_LENGTH = 120;

/** What a session is called: its first words, or until there are any, its id. */
export function sessionTitle(session: Pick<SessionSummary, 'id' | 'title'>): string {
  const title = plainText(session.title ?? '');
  if (title === '') return `Session ${session.id.slice(0, 8)}`;
  // One that ends with its sentence just fits.
  const isCut = (session.title?.length ?? 0) >= TITLE_LENGTH && !/[.!?]$/.test(title);
  return isCut ? `${title}…` : title;
}

/**
 * The state as a person would say it. Idle with tasks running is not idle: the agent will wake up by itself.
 * @returns `Idle, 2 tasks running`
 */
export function describeState(session: Pick<SessionSummary, 'state' | 'runningTaskCount'>): string {
  const tasks = session.runningTaskCount;
  return tasks > 0 ? `${STATE_WORD[session.state]}, ${plural(tasks, 'task')} running` : STATE_WORD[session.state];
}

/** What failed around a session and nobody has looked at: so far, hooks. */
export function failuresInWords(count: number): string {
  return count === 1 ? 'hook failed' : `${count} hooks failed`;
}
