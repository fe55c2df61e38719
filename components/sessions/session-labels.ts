import type { StateNote } from '@interlude/protocol/agent-status';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { canReply, describeExit, hasCrashed, isStalled, listedStateOf } from '@interlude/protocol/session-predicates';
import type { AgentState, SessionGroup, SessionState } from '@interlude/protocol/session-states';
import { plural } from '@/components/ui/duration';
import type { GlyphName } from '@/components/ui/glyph';
import { toPlainText } from '@/components/ui/plain-text';

type Stated = Pick<SessionSummary, 'state' | 'evidence' | 'observations'>;
type Arranged = Stated & Pick<SessionSummary, 'stateSince' | 'arrangement'>;

const STATE_WORD: Record<SessionState, string> = {
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

const ENDING = 'ending';
const UNREACHABLE = 'Unreachable';

/** Headings of the groups. */
export const GROUP_WORD: Record<SessionGroup, string> = {
  ...STATE_WORD,
  lost: 'Lost contact',
  pinned: 'Pinned',
  seen: 'Failed, seen',
  archived: 'Archived',
};

const NOTE_WORDS: Record<StateNote, string | null> = {
  delivering: 'message on its way',
  resumed: 'resumed',
  compacting: 'compacting',
  restarting: 'restarting',
  'no-progress': 'no progress',
  'no-output': 'no output',
  inferred: null,
};

/** Longest title that the server stores. */
const TITLE_LENGTH = 120;

/** The middle of an id, which a row leaves out: similar ids differ at either end. */
const MIDDLE = /(?<=^.{8}).{2,}(?=.{7}$)/;

/** A session's name, else its first words without Markdown, else its id. */
export function sessionTitle(session: Pick<SessionSummary, 'id' | 'title'> & Partial<Arranged>): string {
  const name = session.arrangement?.name ?? null;
  if (name !== null) return name;
  const title = toPlainText(session.title ?? '');
  if (title === '') return `Session ${session.id.replace(MIDDLE, '…')}`;
  // A title that ends like a sentence was not cut.
  const isCut = (session.title?.length ?? 0) >= TITLE_LENGTH && !/[.!?]$/.test(title);
  return isCut ? `${title}…` : title;
}

/** The glyph of a session in any list and header. */
export function glyphOf(session: Stated): GlyphName {
  return isStalled(session) ? 'stalled' : STATE_GLYPH[listedStateOf(session)];
}

export const STATE_GLYPH: Record<AgentState, GlyphName> = {
  'needs-input': 'waiting',
  failed: 'failed',
  lost: 'lost',
  seen: 'failed',
  working: 'working',
  'waiting-on-background': 'running',
  starting: 'starting',
  unknown: 'unknown',
  idle: 'idle',
  complete: 'completed',
  exited: 'done',
};

/**
 * The state in words.
 * @returns `Waiting on background, 2 tasks running`, `Unknown (last: working)`, `Unreachable`, `Failed, exit code 137`
 */
export function describeState(
  session: Stated &
    Pick<SessionSummary, 'isEnding' | 'runningTaskCount' | 'stateReason'> &
    Partial<Pick<SessionSummary, 'away'>>,
): string {
  const { state, evidence, away, runningTaskCount: tasks } = session;
  if (state === 'unknown') {
    const word = away?.isUnreachable ? UNREACHABLE : STATE_WORD.unknown;
    return evidence.last === undefined ? word : `${word} (last: ${STATE_WORD[evidence.last].toLowerCase()})`;
  }
  if (hasCrashed(session)) return `${STATE_WORD.failed}, ${reasonOf(session)}`;
  const running = tasks > 0 && `${plural(tasks, 'task')} running`;
  return [STATE_WORD[state], session.isEnding && ENDING, noteOf(evidence), running].filter(Boolean).join(', ');
}

function noteOf({ note = 'inferred' }: SessionSummary['evidence']): string | null {
  return NOTE_WORDS[note];
}

/** Unseen failures of a session or agent. */
export function failuresInWords(of: Pick<SessionSummary, 'insightCount' | 'otherFailureCount'>): string {
  const { insightCount: count, otherFailureCount: others } = of;
  if (others > 0) return plural(count, 'failure');
  return count === 1 ? 'hook failed' : `${count} hooks failed`;
}

/** A short remark beside the agent's name. */
export interface SessionMark {
  kind: 'note' | 'unreachable' | 'failures' | 'lost' | 'quarantined' | 'obligations' | 'tasks' | 'woken';
  text: string;
  /** Shown as `since 10:22`. Epoch milliseconds. */
  since?: number;
  /** The long form. */
  title?: string;
}

/** Most urgent first, after the small woken glyph: narrow rows cut the last ones. */
export function marksOf(session: SessionSummary): SessionMark[] {
  const { insightCount, lostCount, quarantinedCount, owedCount, overdueCount, runningTaskCount } = session;
  const { lastTurnKind, away, evidence } = session;
  const marks: SessionMark[] = [];
  if (lastTurnKind === 'between-run')
    marks.push({ kind: 'woken', text: 'Woke by itself', title: 'The agent started its last turn itself' });
  if (away?.isUnreachable) marks.push({ kind: 'unreachable', text: UNREACHABLE, since: away.since });
  const note = noteOf(evidence);
  if (session.isEnding) marks.push({ kind: 'note', text: ENDING });
  if (note !== null && evidence.note !== 'delivering') marks.push({ kind: 'note', text: note });
  if (insightCount > 0) marks.push({ kind: 'failures', text: failuresInWords(session) });
  if (lostCount > 0) marks.push({ kind: 'lost', text: `${lostCount} lost` });
  if (quarantinedCount > 0) marks.push({ kind: 'quarantined', text: `${quarantinedCount} rejected` });
  if (overdueCount > 0 || (owedCount > 0 && canReply(session))) {
    const text =
      overdueCount > 0
        ? `${plural(overdueCount, 'reply', 'replies')} overdue`
        : plural(owedCount, 'pending reply', 'pending replies');
    marks.push({ kind: 'obligations', text });
  }
  if (runningTaskCount > 0 && away === null) {
    const text = plural(runningTaskCount, 'task');
    marks.push({ kind: 'tasks', text, title: `${text} running` });
  }
  return marks;
}

/**
 * The last line of a row: the reason of an urgent state, else the last text.
 */
export function lastLine(
  session: Pick<SessionSummary, 'state' | 'stateReason' | 'lastText' | 'observations'>,
  isUrgent: boolean,
): string {
  const words = toPlainText(reasonOf(session) ?? '');
  // the server's words, as in the inbox
  const reason = session.state === 'exited' ? words.charAt(0).toUpperCase() + words.slice(1) : words;
  if (reason !== '' && isUrgent) return reason;
  return toPlainText(session.lastText ?? '') || reason;
}

/** The reason of a state. That of an exit is derived, because older versions stored only the agent's words. */
function reasonOf(session: Pick<SessionSummary, 'state' | 'stateReason' | 'observations'>): string | null {
  const { state, stateReason, observations } = session;
  const { process } = observations;
  return state === 'exited' && process !== undefined ? describeExit(process.value) : stateReason;
}
