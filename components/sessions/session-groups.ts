import { searchWords, sessionText } from '@interlude/protocol/list-search';
import type { SessionSummary } from '@interlude/protocol/read-models';
import type { SessionState } from '@interlude/protocol/vocabulary';
import { plainWords } from '@/components/ui/plain-words';
import { describeState, GROUP_WORD, GROUPS, type Group, groupOf, marksOf, sessionTitle } from './session-words';

export interface SessionGroup {
  group: Group;
  sessions: SessionSummary[];
}

/**
 * Sessions by what they need of a person, most urgent first; within a group the newest first. A group without sessions
 * is left out.
 *
 * @param now on the server's clock: failures age
 */
export function groupSessions(sessions: readonly SessionSummary[], search: string, now: number): SessionGroup[] {
  const words = searchWords(search);
  const found = sessions.filter((session) => matches(session, words, now));
  return GROUPS.map((group) => ({
    group,
    sessions: found.filter((session) => groupOf(session, now) === group).sort((a, b) => rank(b) - rank(a)),
  })).filter(({ sessions }) => sessions.length > 0);
}

const AT_REST: ReadonlySet<SessionState> = new Set(['idle', 'complete', 'exited', 'unknown']);

/** Working sessions keep their place while they work: a list that re-sorts with every word can't be clicked. */
function rank(session: SessionSummary): number {
  return AT_REST.has(session.state) ? session.lastEventAt : session.stateSince;
}

function matches(session: SessionSummary, words: string[], now: number): boolean {
  if (words.length === 0) return true;
  // in which group it stands is a matter of time
  const text = `${textOf(session)}\n${GROUP_WORD[groupOf(session, now)].toLowerCase()}`;
  return words.every((word) => text.includes(word));
}

/** A list is searched with every key, and its sessions are the same from one to the next. */
const texts = new WeakMap<SessionSummary, string>();

/** All that a row itself says: what is seen there is found. What was written is found as well, whatever of it is shown. */
function textOf(session: SessionSummary): string {
  const known = texts.get(session);
  if (known !== undefined) return known;
  const text = [
    sessionText(session),
    sessionTitle(session),
    describeState(session),
    ...marksOf(session).map((mark) => mark.text),
    plainWords(session.stateReason ?? ''),
    plainWords(session.lastText ?? ''),
  ]
    .join('\n')
    .toLowerCase();
  texts.set(session, text);
  return text;
}
