'use client';

import { useState } from 'react';
import { SessionColumns } from './session-columns';
import { SessionHeader } from './session-header';
import { SessionLog } from './session-log';
import { useNamedTasks } from './session-scope';
import { type SessionParts, type SessionStart, SessionStores } from './session-stores';
import { useLogPanel } from './use-log-panel';

interface SessionViewProps {
  sessionId: string;
  /** JSON of a SessionStart: an object would lose an agent's `__proto__` keys. */
  initial: string;
  nonce: string | undefined;
}

export function SessionView({ sessionId, initial: json, nonce }: SessionViewProps) {
  const [initial] = useState(() => JSON.parse(json) as SessionStart);
  return (
    <SessionStores sessionId={sessionId} initial={initial}>
      {(parts) => <SessionPanes nonce={nonce} {...parts} />}
    </SessionStores>
  );
}

/** Layout of a session's page: transcript, tasks beside it on wide screens, and the log. */
function SessionPanes(props: SessionParts & { nonce: string | undefined }) {
  const named = useNamedTasks();
  const panel = useLogPanel();
  const { tasks } = named;
  return (
    <main className="relative flex h-full min-h-0 flex-col">
      <SessionLog panel={panel} tasks={tasks}>
        <div inert={panel.open && panel.covers} className="flex min-h-0 flex-1">
          <SessionColumns
            {...props}
            named={named}
            head={(onTasks) => <SessionHeader taskCount={tasks.length} onTasks={onTasks} log={panel} />}
            historyUpdate="push"
          />
        </div>
      </SessionLog>
    </main>
  );
}
