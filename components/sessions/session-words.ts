import { plural } from '@/components/ui/duration';
import type { GlyphName } from '@/components/ui/glyph';
import { plainWords } from '@/components/ui/plain-words';
import { SESSION_STATES, type SessionState, type SessionSummary } from '@/lib/protocol/read-models';

/** What a session is listed under: its state, or that nobody tells of it any more. */
export const STANDINGS = ['failed', 'away', ...SESSION_STATES.slice(1)] as const;
export type Standing = SessionState | 'away';

export function standingOf({ state, away }: Pick<SessionSummary, 'state' | 'away'>): Standing {
  return away === null ? state : 'away';
}

export const STANDING_WORD: Record<Standing, string> = {
  failed: 'Failed',
  away: 'Runner gone',
  waiting: 'Waiting',
  working: 'Working',
  idle: 'Idle',
  done: 'Done',
};

/** The server keeps this much of a title. */
const TITLE_LENGTH = 120;

/** What a session is called: its first words without the marks of markdown, or until there are any, its id. */
export function sessionTitle(session: Pick<SessionSummary, 'id' | 'title'>): string {
  const title = plainWords(session.title ?? '');
  if (title === '') return `Session ${session.id.slice(0, 8)}`;
  // One that ends with its sentence just fits.
  const isCut = (session.title?.length ?? 0) >= TITLE_LENGTH && !/[.!?]$/.test(title);
  return isCut ? `${title}…` : title;
}

/** The sign for it. */
export function glyphOf(standing: Standing): GlyphName {
  return standing === 'away' ? 'lost' : standing;
}

/**
 * The state as a person would say it. Idle with tasks running is not idle: the agent will wake up by itself.
 * @returns `Idle, 2 tasks running`
 */
export function describeState(session: Pick<SessionSummary, 'state' | 'away' | 'runningTaskCount'>): string {
  const { away, runningTaskCount: tasks } = session;
  if (away !== null) return away.agentGoesOn ? 'Not watched' : STANDING_WORD.away;
  const word = STANDING_WORD[session.state];
  return tasks > 0 ? `${word}, ${plural(tasks, 'task')} running` : word;
}

/** What failed around a session and nobody has looked at: so far, hooks. */
export function failuresInWords(count: number): string {
  return count === 1 ? 'hook failed' : `${count} hooks failed`;
}
