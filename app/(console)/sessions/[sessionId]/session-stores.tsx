'use client';

import type { AgentDetail, SessionDetail, TaskList, TranscriptPage } from '@interlude/protocol/read-models';
import { type ReactNode, useState } from 'react';
import { SessionLiveness } from '@/app/(console)/session-liveness';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { useInitialData } from '@/components/live/use-fleet';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { SessionScopeProvider, useSessionRows } from './session-scope';

export interface SessionStart {
  session: SessionDetail;
  agent: Pick<AgentDetail, 'agent' | 'position'> | null;
  tasks: TaskList;
  /** Null if the transcript is too large to send with the page. */
  transcript: TranscriptPage | null;
}

export interface SessionParts {
  /** An error about something that is scrolled out of view. */
  toast: string | null;
  showToast: (text: string | null) => void;
}

/** Fills the stores with the page's initial data, and provides what its parts share. */
export function SessionStores(props: {
  sessionId: string;
  initial: SessionStart;
  /** The configured URL of this dashboard; null if there is none. */
  publicUrl: string | null;
  children: (parts: SessionParts) => ReactNode;
}) {
  const { sessionId, initial, publicUrl, children } = props;
  useInitialData((fleet) => {
    fleet.putSession(initial.session);
    if (initial.agent !== null) fleet.putAgent(initial.agent);
    fleet.putTasks(sessionId, initial.tasks, initial.tasks.omitted !== undefined);
  });
  const [toast, showToast] = useState<string | null>(null);
  const [actions] = useState(
    () =>
      new ActionStore(sessionId, (key, reason) => {
        if (isInSight(`[data-action="${CSS.escape(key)}"]`)) return;
        showToast(`Your request to the agent failed: ${reason}`);
      }),
  );
  return (
    <ActionsProvider store={actions}>
      <SessionScopeProvider sessionId={sessionId} initial={initial.transcript} publicUrl={publicUrl}>
        <PageLiveness>
          <RequestBoardProvider>{children({ toast, showToast })}</RequestBoardProvider>
        </PageLiveness>
      </SessionScopeProvider>
    </ActionsProvider>
  );
}

/** True if a selected element is visible in the window and in its scroll box. */
export function isInSight(selector: string): boolean {
  return [...document.querySelectorAll(selector)].some((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    const frame = element.closest('[role="log"]')?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
    return bottom > frame.top && top < frame.bottom;
  });
}

function PageLiveness({ children }: { children: ReactNode }) {
  const { session, agent } = useSessionRows();
  return (
    <SessionLiveness session={session} agent={agent}>
      {children}
    </SessionLiveness>
  );
}
