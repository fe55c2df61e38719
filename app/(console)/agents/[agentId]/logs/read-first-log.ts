import { MAX_LOG_SEARCH_LENGTH } from '@interlude/protocol/limits';
import { FIRST_LINES, type FirstLog, filterOf, queryFromParams } from '@/components/logs/log-query';
import { readLogLines } from '@/lib/server/queries/read-logs';

type Sight = Parameters<typeof readLogLines>[0];
type SearchParams = Record<string, string | string[] | undefined>;

/**
 * A search takes its time, which the page does not wait for; and a browser reads what comes with a page in one go, in
 * which megabytes take longer than a frame. It goes on where this ends.
 */
const LIMITS = { bytes: 256 * 1024, searchMs: 50 };

/**
 * The newest page of the log by what the address asks for.
 *
 * @returns null if that is the browser's to read: it says what is wrong with a regex
 */
export async function readFirstLog(sight: Sight, agentId: string, search: SearchParams): Promise<FirstLog | null> {
  const query = queryFromParams(paramsOf(search));
  if (query.isRegex || query.text.length > MAX_LOG_SEARCH_LENGTH) return null;
  const request = { filter: filterOf(query, null), place: { kind: 'newest' }, limit: FIRST_LINES } as const;
  const page = await readLogLines(sight, agentId, request, LIMITS);
  return page === null ? null : { query, page, readAt: Date.now() };
}

function paramsOf(search: SearchParams): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    for (const one of [value].flat()) if (one !== undefined) params.append(name, one);
  }
  return params;
}
