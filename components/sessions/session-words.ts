import type { StateNote } from '@interlude/protocol/agent-status';
import type { SessionAway, SessionSummary } from '@interlude/protocol/read-models';
import { hasCrashed, isActiveState, isSeen, wentSilent } from '@interlude/protocol/session-predicates';
import type { SessionState } from '@interlude/protocol/vocabulary';
import { plural } from '@/components/ui/duration';
import type { GlyphName } from '@/components/ui/glyph';
import { plainWords } from '@/components/ui/plain-words';

/**
 * How a session stands: its state, with two differences. A process that has failed stands with what has failed; a
 * session that went silent in the middle of something is `lost`.
 */
export type Standing = SessionState | 'lost';

/**
 * What a session is listed under, what needs a person most first. A failure that was seen, or is a day old, needs nobody
 * any more.
 */
export const GROUPS = [
  'needs-input',
  'failed',
  'lost',
  'pinned',
  'working',
  'waiting-on-background',
  'starting',
  'idle',
  'unknown',
  'complete',
  'seen',
  'exited',
  'archived',
] as const;
export type Group = (typeof GROUPS)[number];

type Stated = Pick<SessionSummary, 'state' | 'evidence' | 'observations'>;
type Arranged = Stated & Pick<SessionSummary, 'stateSince' | 'arrangement'>;

/** A failure older than this is no news. */
const OLD_MS = 24 * 60 * 60_000;

export function standingOf(session: Stated): Standing {
  if (wentSilent(session)) return 'lost';
  return hasCrashed(session) ? 'failed' : session.state;
}

export const STATE_WORD: Record<SessionState, string> = {
  'needs-input': 'Needs input',
  failed: 'Failed',
  working: 'Working',
  'waiting-on-background': 'Waiting on background',
  starting: 'Starting',
  unknown: 'Unknown',
  idle: 'Idle',
  complete: 'Complete',
  exited: 'Exited',
};

const UNREACHABLE = 'Unreachable';

/** The headings of the list. */
export const GROUP_WORD: Record<Group, string> = {
  ...STATE_WORD,
  lost: 'Lost contact',
  pinned: 'Pinned',
  seen: 'Failed, seen',
  archived: 'Archived',
};

const NOTE_WORDS: Record<StateNote, string | null> = {
  delivering: 'message on its way',
  resumed: 'resumed after it was complete',
  compacting: 'compacting',
  restarting: 'restarting',
  'no-progress': 'no sign of progress',
  'no-output': 'no output',
  inferred: null,
};

/** Of these, what a person should notice in a list. */
const MARKED: Partial<Record<StateNote, string>> = {
  resumed: 'resumed',
  compacting: 'compacting',
  restarting: 'restarting',
  'no-progress': 'no progress',
  'no-output': 'no output',
};

/** Whether it is told for how long it has been so. */
export function isTimed({ state }: Pick<SessionSummary, 'state'>): boolean {
  return isActiveState(state);
}

/** The server keeps this much of a title. */
const TITLE_LENGTH = 120;

/** Of an id, what a row has no room for: it is told from its like by its end as well as by its beginning. */
const MIDDLE = /(?<=^.{8}).{2,}(?=.{7}$)/;

/** What a session is called: its first words without the marks of markdown, or until there are any, its id. */
export function sessionTitle(session: Pick<SessionSummary, 'id' | 'title'> & Partial<Arranged>): string {
  const name = session.arrangement?.name ?? null;
  if (name !== null) return name;
  const title = plainWords(session.title ?? '');
  if (title === '') return `Session ${session.id.replace(MIDDLE, '…')}`;
  // One that ends with its sentence just fits.
  const isCut = (session.title?.length ?? 0) >= TITLE_LENGTH && !/[.!?]$/.test(title);
  return isCut ? `${title}…` : title;
}

/** The sign for it. */
export function glyphOf(standing: Standing): GlyphName {
  return GLYPH[standing];
}

const GLYPH: Record<Standing, GlyphName> = {
  'needs-input': 'waiting',
  failed: 'failed',
  lost: 'lost',
  working: 'working',
  'waiting-on-background': 'running',
  starting: 'starting',
  unknown: 'unknown',
  idle: 'idle',
  complete: 'completed',
  exited: 'done',
};

/**
 * The state as a person would say it.
 * @returns `Waiting on background, 2 tasks running`, `Unknown (last: working)`, `Unreachable`, `Exited (137)`
 */
export function describeState(
  session: Stated & Pick<SessionSummary, 'runningTaskCount'> & Partial<Pick<SessionSummary, 'away'>>,
): string {
  const { state, evidence, observations, away, runningTaskCount: tasks } = session;
  if (state === 'unknown') {
    const word = away?.isUnreachable ? UNREACHABLE : STATE_WORD.unknown;
    return evidence.last === undefined ? word : `${word} (last: ${lower(evidence.last)})`;
  }
  const exit = observations.process?.value;
  if (state === 'exited') {
    const code = exit?.signal ?? exit?.code ?? null;
    return code === null ? STATE_WORD.exited : `Exited (${code})`;
  }
  const note = evidence.note === undefined ? null : NOTE_WORDS[evidence.note];
  const running = tasks > 0 ? `${plural(tasks, 'task')} running` : null;
  return [STATE_WORD[state], note, running].filter((part) => part !== null).join(', ');
}

/** Why nothing is heard of a session, where there is room for two words. */
export function goneWord({ agentGoesOn, isSilent, isUnreachable }: SessionAway): string {
  if (isUnreachable) return UNREACHABLE;
  if (agentGoesOn) return 'Not watched';
  return isSilent ? 'Silent' : 'Runner gone';
}

function lower(state: SessionState): string {
  return STATE_WORD[state].toLowerCase();
}

/** What failed around a session or agent and nobody has looked at. */
export function failuresInWords(of: Pick<SessionSummary, 'insightCount' | 'otherFailureCount'>): string {
  const { insightCount: count, otherFailureCount: others } = of;
  if (others > 0) return plural(count, 'failure');
  return count === 1 ? 'hook failed' : `${count} hooks failed`;
}

/** What is told about a session in a word or two beside its agent. */
export interface SessionMark {
  kind: 'note' | 'unreachable' | 'failures' | 'lost' | 'quarantined' | 'owed' | 'tasks' | 'woken';
  text: string;
  /** Shown as `since 10:22`. Epoch milliseconds. */
  since?: number;
  /** The same at length. */
  title?: string;
}

/** What needs a person most comes first, but for a sign that is small: where there is no room for all, the last ones go. */
export function marksOf(session: SessionSummary): SessionMark[] {
  const { insightCount, lostCount, quarantinedCount, owedCount, overdueCount, runningTaskCount } = session;
  const { lastTurnKind, away, evidence } = session;
  const marks: SessionMark[] = [];
  if (lastTurnKind === 'between-run')
    marks.push({ kind: 'woken', text: 'Woke by itself', title: 'The agent started its last turn itself' });
  if (away?.isUnreachable) marks.push({ kind: 'unreachable', text: UNREACHABLE, since: away.since });
  const note = evidence.note === undefined ? null : MARKED[evidence.note];
  if (note != null) marks.push({ kind: 'note', text: note });
  if (insightCount > 0) marks.push({ kind: 'failures', text: failuresInWords(session) });
  if (lostCount > 0) marks.push({ kind: 'lost', text: `${lostCount} lost` });
  if (quarantinedCount > 0) marks.push({ kind: 'quarantined', text: `${quarantinedCount} quarantined` });
  if (owedCount > 0) {
    const late = overdueCount === 0 ? '' : `, ${overdueCount} overdue`;
    const title = `${plural(owedCount, 'message')} without a reply${late}`;
    marks.push({ kind: 'owed', text: `owes ${owedCount}${late}`, title });
  }
  if (runningTaskCount > 0 && away === null) marks.push({ kind: 'tasks', text: plural(runningTaskCount, 'task') });
  return marks;
}

/** @param now on the server's clock: failures age */
export function needsLook(session: Arranged, now: number): boolean {
  const standing = standingOf(session);
  if (standing === 'needs-input') return true;
  return (standing === 'failed' || standing === 'lost') && !isSeen(session) && now - session.stateSince < OLD_MS;
}

export function groupOf(session: Arranged, now: number): Group {
  const { archivedAt, pinnedAt } = session.arrangement;
  if (archivedAt !== null) return 'archived';
  const standing = standingOf(session);
  if (needsLook(session, now)) return standing;
  if (pinnedAt !== null) return 'pinned';
  return standing === 'failed' || standing === 'lost' ? 'seen' : standing;
}

/**
 * The line beneath, in words: what it fails of or waits for, else what was said last.
 * @param isUrgent whether it needs a look
 */
export function lastLine(
  { stateReason, lastText }: Pick<SessionSummary, 'stateReason' | 'lastText'>,
  isUrgent: boolean,
): string {
  const reason = plainWords(stateReason ?? '');
  if (reason !== '' && isUrgent) return reason;
  return plainWords(lastText ?? '') || reason;
}
