'use client';

import type { AgentDetail, SessionDetail, TaskList } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { SessionColumns, useSessionJump } from '@/app/(console)/sessions/[sessionId]/session-columns';
import { SessionFacts, SessionTitle } from '@/app/(console)/sessions/[sessionId]/session-facts';
import { useNamedTasks, useSessionRows } from '@/app/(console)/sessions/[sessionId]/session-scope';
import {
  type SessionParts,
  type SessionStart,
  SessionStores,
} from '@/app/(console)/sessions/[sessionId]/session-stores';
import { SessionTabs, TabPanel, useSessionTab } from '@/app/(console)/sessions/[sessionId]/session-tabs';
import { useMayAct } from '@/components/access/may-act';
import { OutgoingWake } from '@/components/composer/outgoing-wake';
import { EmbedWait } from '@/components/embed/embed-notice';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { fetchJson, RequestError } from '@/components/live/fetch-json';
import { TaskPanel } from '@/components/tasks/task-panel';
import { JumpProvider } from '@/components/ui/jump';

/** A session in a frame, which loads the page's initial data itself. */
export function EmbedSession({ sessionId, nonce }: { sessionId: string; nonce: string | undefined }) {
  const mayAct = useMayAct();
  const { data, error, refetch } = useQuery({
    queryKey: ['session-start', sessionId],
    queryFn: ({ signal }) => readStart(sessionId, signal),
  });
  if (data === undefined) return <EmbedWait error={error} retry={() => void refetch()} />;
  return (
    <SessionStores sessionId={sessionId} initial={data} publicUrl={null}>
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
  const [tasks, agent] = await Promise.all([
    fetchJson<TaskList>(`${path}/tasks`, signal),
    fetchJson<AgentDetail>(`/agents/${encodeURIComponent(session.session.agentId)}`, signal).catch(nothingIfHidden),
  ]);
  return { session, agent, tasks, transcript: null };
}

/** A token for a session may not cover its agent. */
function nothingIfHidden(error: unknown): null {
  if (error instanceof RequestError && (error.status === 404 || error.status === 403)) return null;
  throw error;
}

/** A session's page in a frame, without navigation and without the log, which has its own embed. */
function EmbedPanes({ nonce, ...parts }: SessionParts & { nonce: string | undefined }) {
  const { session, agent } = useSessionRows();
  const named = useNamedTasks();
  const tabs = useSessionTab('transcript', false);
  // the history belongs to the embedding page
  const jump = useSessionJump(tabs.showTranscript, 'replace');
  const taskCount = named.tasks.length + named.omitted;
  return (
    <main className="flex h-full min-h-0 flex-col">
      <header className="shrink-0 border-line border-b px-4 pt-2 sm:px-6">
        <div className="flex items-center gap-3">
          <SessionTitle session={session} />
          <div className="ml-auto">
            <ConnectionBadge />
          </div>
        </div>
        <SessionFacts session={session} agent={agent} hasLinks={false} />
        <SessionTabs tabs={tabs} of={['transcript', 'tasks']} counts={{ tasks: taskCount }} />
      </header>
      <div className="relative flex min-h-0 flex-1 flex-col">
        <TabPanel tabs={tabs} of="transcript">
          <SessionColumns {...parts} nonce={nonce} named={named} jump={jump} />
        </TabPanel>
        <TabPanel tabs={tabs} of="tasks">
          <JumpProvider jump={jump}>
            <TaskPanel {...named} isWide />
          </JumpProvider>
        </TabPanel>
      </div>
    </main>
  );
}
