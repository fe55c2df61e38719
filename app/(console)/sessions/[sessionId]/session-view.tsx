'use client';

import { useState } from 'react';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { useStart } from '@/components/live/use-fleet';
import { RequestBoardProvider } from '@/components/requests/request-board';
import type { AgentDetail, SessionDetail, TaskList, TranscriptPage } from '@/lib/protocol/read-models';
import { isInSight } from './is-in-sight';
import { PageLiveness } from './page-liveness';
import { SessionPanes } from './session-panes';
import { SessionScopeProvider } from './session-scope';

export interface SessionStart {
  session: SessionDetail;
  agent: Pick<AgentDetail, 'agent' | 'position'> | null;
  tasks: { list: TaskList; whole: boolean };
  /** Null if it is too much to come with the page. */
  transcript: TranscriptPage | null;
}

interface SessionViewProps {
  sessionId: string;
  /** JSON of a SessionStart: as an object it would come without what an agent calls `__proto__`. */
  initial: string;
  nonce: string | undefined;
}

/** A session's page: what came with it goes into the stores, and what its parts share stands around them. */
export function SessionView({ sessionId, initial: json, nonce }: SessionViewProps) {
  const [initial] = useState(() => JSON.parse(json) as SessionStart);
  useStart((fleet) => {
    fleet.takeSession(initial.session);
    if (initial.agent !== null) fleet.takeAgent(initial.agent);
    fleet.takeTasks(sessionId, initial.tasks.list, !initial.tasks.whole);
  });
  const [toast, say] = useState<string | null>(null);
  const [actions] = useState(
    () =>
      new ActionStore(sessionId, (key, reason) => {
        if (isInSight(`[data-action="${CSS.escape(key)}"]`)) return;
        say(`What you asked of the agent failed: ${reason}`);
      }),
  );
  return (
    <ActionsProvider store={actions}>
      <SessionScopeProvider sessionId={sessionId} initial={initial.transcript}>
        <PageLiveness>
          <RequestBoardProvider>
            <SessionPanes nonce={nonce} actions={actions} toast={toast} say={say} />
          </RequestBoardProvider>
        </PageLiveness>
      </SessionScopeProvider>
    </ActionsProvider>
  );
}
