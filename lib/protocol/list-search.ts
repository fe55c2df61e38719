import type { InboxItem } from './inbox';
import type { AgentSummary, SessionSummary } from './read-models';

/** Search in lists. The server applies it to all rows and a page to its loaded rows, so that both find the same. */

/** The distinct words of a search. A row matches if it contains every word. */
export function searchWords(text: string): string[] {
  return [...new Set(text.toLowerCase().split(/\s+/).filter(Boolean))];
}

/** The searched text of a session, in lower case. */
export function sessionText({ id, agentId, title, stateReason, lastText, arrangement }: SessionSummary): string {
  return searchable(arrangement.name, title, stateReason, lastText, id, agentId);
}

/** The searched text of an agent, in lower case. */
export function agentText({ id, kind }: Pick<AgentSummary, 'id' | 'kind'>): string {
  return `${id}\n${kind ?? ''}`.toLowerCase();
}

/** The searched text of an inbox item, in lower case. */
export function inboxText({ agentId, sessionId, title }: Pick<InboxItem, 'agentId' | 'sessionId' | 'title'>): string {
  return searchable(title, sessionId, agentId);
}

function searchable(...texts: (string | null)[]): string {
  return texts
    .filter((text) => text !== null)
    .join('\n')
    .toLowerCase();
}
