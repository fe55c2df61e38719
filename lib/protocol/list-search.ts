import type { InboxItem } from './inbox';
import type { AgentSummary, SessionSummary } from './read-models';

/**
 * What a search in a list looks for, and where. The server searches all rows by it, and a page the rows it has, so both
 * find the same.
 */

/** The words of a search, each once: a row that has all of them is found. */
export function searchWords(text: string): string[] {
  return [...new Set(text.toLowerCase().split(/\s+/).filter(Boolean))];
}

/** A session's names, what was written last, and why it stands as it does, a request's title too. In lower case. */
export function sessionText({ id, agentId, title, stateReason, lastText, arrangement }: SessionSummary): string {
  return searchable(arrangement.name, title, stateReason, lastText, id, agentId);
}

/** An agent's name and kind. In lower case. */
export function agentText({ id, kind }: Pick<AgentSummary, 'id' | 'kind'>): string {
  return `${id}\n${kind ?? ''}`.toLowerCase();
}

/** What an inbox item says, and what it is about. In lower case. */
export function inboxText({ agentId, sessionId, title }: Pick<InboxItem, 'agentId' | 'sessionId' | 'title'>): string {
  return searchable(title, sessionId, agentId);
}

function searchable(...texts: (string | null)[]): string {
  return texts
    .filter((text) => text !== null)
    .join('\n')
    .toLowerCase();
}
