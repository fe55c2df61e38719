'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { useFleet } from '@/components/live/use-fleet';
import { sessionTitle } from '@/components/sessions/session-words';
import { Name, Quoted, Words } from '@/components/ui/name';

/** Whose item it is: the agent, always, and its session. */
export function ItemOwner({ item: { agentId, sessionId, from } }: { item: InboxItem }) {
  const session = useFleet(({ sessions }) => (sessionId === null ? undefined : sessions.get(sessionId)));
  return (
    <span className="wrap-break-word block pl-5 text-ink-3 text-xs">
      <Name text={agentId} />
      {sessionId !== null && (
        <>
          {' · '}
          <bdi>
            <Words text={sessionTitle(session ?? { id: sessionId, title: null })} />
          </bdi>
        </>
      )}
      {from !== null && (
        <>
          {' · '}
          <Quoted text={from.id} /> waits
        </>
      )}
    </span>
  );
}
