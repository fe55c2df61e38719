import type { SessionSummary } from '@/lib/protocol/read-models';
import { STANDINGS, type Standing, sessionTitle, standingOf } from './session-words';

export interface SessionGroup {
  standing: Standing;
  sessions: SessionSummary[];
}

/**
 * Sessions by what they need of a person, most urgent first; within a group the newest first. A group without sessions
 * is left out.
 */
export function groupSessions(sessions: readonly SessionSummary[], search: string): SessionGroup[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = sessions.filter((session) => matches(session, words));
  return STANDINGS.map((standing) => ({
    standing,
    sessions: found.filter((session) => standingOf(session) === standing).sort((a, b) => rank(b) - rank(a)),
  })).filter((group) => group.sessions.length > 0);
}

/** Working sessions keep their place while they work: a list that re-sorts with every word can't be clicked. */
function rank(session: SessionSummary): number {
  return session.state === 'idle' || session.state === 'done' ? session.lastEventAt : session.stateSince;
}

function matches(session: SessionSummary, words: string[]): boolean {
  if (words.length === 0) return true;
  const text = `${sessionTitle(session)} ${session.agentId} ${session.id} ${session.lastText ?? ''}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
