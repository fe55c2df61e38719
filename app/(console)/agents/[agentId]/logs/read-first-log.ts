import { MAX_LOG_SEARCH_LENGTH } from '@interlude/protocol/limits';
import { FIRST_LINES, type FirstLog, filterOf, queryFromParams } from '@/components/logs/log-query';
import { readLogLines } from '@/lib/server/queries/read-logs';

type ReadScope = Parameters<typeof readLogLines>[0];
type SearchParams = Record<string, string | string[] | undefined>;

/** Limits that keep the first page from delaying the first paint. The browser loads the rest. */
const LIMITS = { bytes: 256 * 1024, searchMs: 50 };

/**
 * The newest page of the log for the query in the URL.
 *
 * @returns null for a regular expression: the browser loads that page, and reports an invalid expression
 */
export async function readFirstLog(scope: ReadScope, agentId: string, search: SearchParams): Promise<FirstLog | null> {
  const query = queryFromParams(paramsOf(search));
  if (query.isRegex || query.text.length > MAX_LOG_SEARCH_LENGTH) return null;
  const request = { filter: filterOf(query, null), place: { kind: 'newest' }, limit: FIRST_LINES } as const;
  const page = await readLogLines(scope, agentId, request, LIMITS);
  return page === null ? null : { query, page, readAt: Date.now() };
}

function paramsOf(search: SearchParams): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    for (const one of [value].flat()) if (one !== undefined) params.append(name, one);
  }
  return params;
}
