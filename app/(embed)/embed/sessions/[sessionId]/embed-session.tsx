'use client';

import type { AgentDetail, SessionDetail, TaskList } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { SessionColumns } from '@/app/(console)/sessions/[sessionId]/session-columns';
import { SessionFacts } from '@/app/(console)/sessions/[sessionId]/session-facts';
import { useNamedTasks, useSessionScope } from '@/app/(console)/sessions/[sessionId]/session-scope';
import {
  type SessionParts,
  type SessionStart,
  SessionStores,
} from '@/app/(console)/sessions/[sessionId]/session-stores';
import { useMayAct } from '@/components/access/may-act';
import { OutgoingWake } from '@/components/composer/outgoing-wake';
import { EmbedWait } from '@/components/embed/embed-notice';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { fetchJson, RequestError } from '@/components/live/fetch-json';
import { useSession } from '@/components/sessions/use-sessions';

/** A session in a frame, which loads the page's initial data itself. */
export function EmbedSession({ sessionId, nonce }: { sessionId: string; nonce: string | undefined }) {
  const mayAct = useMayAct();
  const { data, error, refetch } = useQuery({
    queryKey: ['session-start', sessionId],
    queryFn: ({ signal }) => readStart(sessionId, signal),
  });
  if (data === undefined) return <EmbedWait error={error} retry={() => void refetch()} />;
  return (
    <SessionStores sessionId={sessionId} initial={data}>
      {(parts) => (
        <>
          {mayAct && <OutgoingWake />}
          <EmbedPanes nonce={nonce} {...parts} />
        </>
      )}
    </SessionStores>
  );
}

/**
 * Reads the initial data of a session's page. The transcript loads itself.
 *
 * Ordering: reads tasks and agent after the session, so they are not older than its row.
 */
async function readStart(sessionId: string, signal: AbortSignal): Promise<SessionStart> {
  const path = `/sessions/${encodeURIComponent(sessionId)}`;
  const session = await fetchJson<SessionDetail>(path, signal);
  const [list, agent] = await Promise.all([
    fetchJson<TaskList>(`${path}/tasks`, signal),
    fetchJson<AgentDetail>(`/agents/${encodeURIComponent(session.session.agentId)}`, signal).catch(nothingIfHidden),
  ]);
  return { session, agent, tasks: { list, isComplete: true }, transcript: null };
}

/** A token for a session may not cover its agent. */
function nothingIfHidden(error: unknown): null {
  if (error instanceof RequestError && (error.status === 404 || error.status === 403)) return null;
  throw error;
}

/** A session's page in a frame, without navigation and without the log, which has its own embed. */
function EmbedPanes(props: SessionParts & { nonce: string | undefined }) {
  const session = useSession(useSessionScope().sessionId);
  const named = useNamedTasks();
  return (
    <main className="relative flex h-full min-h-0">
      <SessionColumns
        {...props}
        named={named}
        head={(onTasks) => (
          <header className="flex shrink-0 items-start gap-3 border-line border-b px-4 py-2 sm:px-6">
            <SessionFacts session={session} taskCount={named.tasks.length} onTasks={onTasks} hasLinks={false} />
            <div className="mt-[3px]">
              <ConnectionBadge />
            </div>
          </header>
        )}
        // the history belongs to the embedding page
        historyUpdate="replace"
      />
    </main>
  );
}
