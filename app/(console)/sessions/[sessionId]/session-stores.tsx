'use client';

import type { AgentDetail, SessionDetail, TaskList, TranscriptPage } from '@interlude/protocol/read-models';
import { type ReactNode, useState } from 'react';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { useInitialData } from '@/components/live/use-fleet';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { isInSight } from './is-in-sight';
import { PageLiveness } from './page-liveness';
import { SessionScopeProvider } from './session-scope';

export interface SessionStart {
  session: SessionDetail;
  agent: Pick<AgentDetail, 'agent' | 'position'> | null;
  tasks: { list: TaskList; whole: boolean };
  /** Null if it is too much to come with the page. */
  transcript: TranscriptPage | null;
}

export interface SessionParts {
  actions: ActionStore;
  /** What went wrong out of sight. */
  toast: string | null;
  say: (text: string | null) => void;
}

/** What a session's page begins with goes into the stores, and what its parts share stands around them. */
export function SessionStores(props: {
  sessionId: string;
  initial: SessionStart;
  children: (parts: SessionParts) => ReactNode;
}) {
  const { sessionId, initial, children } = props;
  useInitialData((fleet) => {
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
          <RequestBoardProvider>{children({ actions, toast, say })}</RequestBoardProvider>
        </PageLiveness>
      </SessionScopeProvider>
    </ActionsProvider>
  );
}
