import type { AgentDetail, SessionDetail, TaskList } from '@interlude/protocol/read-models';
import type { SessionStart } from '@/app/(console)/sessions/[sessionId]/session-stores';
import { fetchJson, RequestError } from '@/components/live/fetch-json';

/**
 * What a session's page begins with, but for its transcript, which reads itself.
 *
 * Ordering: tasks and agent are read after the session, so that nothing they tell of is older than its row.
 */
export async function readStart(sessionId: string, signal: AbortSignal): Promise<SessionStart> {
  const path = `/sessions/${encodeURIComponent(sessionId)}`;
  const session = await fetchJson<SessionDetail>(path, signal);
  const [list, agent] = await Promise.all([
    fetchJson<TaskList>(`${path}/tasks`, signal),
    fetchJson<AgentDetail>(`/agents/${encodeURIComponent(session.session.agentId)}`, signal).catch(nothingIfHidden),
  ]);
  return { session, agent, tasks: { list, whole: true }, transcript: null };
}

/** A token for a session need not be one for its agent. */
function nothingIfHidden(error: unknown): null {
  if (error instanceof RequestError && (error.status === 404 || error.status === 403)) return null;
  throw error;
}
