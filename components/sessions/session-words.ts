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

/** What failed around a session or agent and nobody has looked at. */
export function failuresInWords(of: Pick<SessionSummary, 'insightCount' | 'otherFailureCount'>): string {
  const { insightCount: count, otherFailureCount: others } = of;
  if (others > 0) return plural(count, 'failure');
  return count === 1 ? 'hook failed' : `${count} hooks failed`;
}

/** What is told about a session in a word or two beside its agent. */
export interface SessionMark {
  kind: 'failures' | 'lost' | 'quarantined' | 'owed' | 'tasks' | 'woken';
  text: string;
  /** The same at length. */
  title?: string;
}

/** What needs a person most comes first, but for a sign that is small: where there is no room for all, the last ones go. */
export function marksOf(session: SessionSummary): SessionMark[] {
  const { insightCount, lostCount, quarantinedCount, owedCount, runningTaskCount, lastTurnKind, away } = session;
  const marks: SessionMark[] = [];
  if (lastTurnKind === 'between-run')
    marks.push({ kind: 'woken', text: 'Woke by itself', title: 'The agent started its last turn itself' });
  if (insightCount > 0) marks.push({ kind: 'failures', text: failuresInWords(session) });
  if (lostCount > 0) marks.push({ kind: 'lost', text: `${lostCount} lost` });
  if (quarantinedCount > 0) marks.push({ kind: 'quarantined', text: `${quarantinedCount} quarantined` });
  if (owedCount > 0) {
    marks.push({ kind: 'owed', text: `owes ${owedCount}`, title: `${plural(owedCount, 'message')} without a reply` });
  }
  if (runningTaskCount > 0 && away === null) marks.push({ kind: 'tasks', text: plural(runningTaskCount, 'task') });
  return marks;
}

export function needsLook(session: Pick<SessionSummary, 'state'>): boolean {
  return session.state === 'failed' || session.state === 'waiting';
}

/** The line beneath, in words: what it fails of or waits for, else what was said last. */
export function lastLine(session: Pick<SessionSummary, 'state' | 'stateReason' | 'lastText'>): string {
  const reason = plainWords(session.stateReason ?? '');
  if (reason !== '' && needsLook(session)) return reason;
  return plainWords(session.lastText ?? '') || reason;
}
