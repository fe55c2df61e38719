'use client';

import { SessionColumns } from './session-columns';
import { SessionHeader } from './session-header';
import { SessionLog } from './session-log';
import type { SessionParts } from './session-stores';
import { useLogPanel } from './use-log-panel';
import { useNamedTasks } from './use-named-tasks';

/** How the parts of a session's page share its room: the transcript, on wide screens its tasks beside it, and the log. */
export function SessionPanes(props: SessionParts & { nonce: string | undefined }) {
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
            leaves="push"
          />
        </div>
      </SessionLog>
    </main>
  );
}
