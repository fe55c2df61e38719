'use client';

import { SessionColumns } from '@/app/(console)/sessions/[sessionId]/session-columns';
import { SessionFacts } from '@/app/(console)/sessions/[sessionId]/session-facts';
import { useSessionScope } from '@/app/(console)/sessions/[sessionId]/session-scope';
import type { SessionParts } from '@/app/(console)/sessions/[sessionId]/session-stores';
import { useNamedTasks } from '@/app/(console)/sessions/[sessionId]/use-named-tasks';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { useSession } from '@/components/sessions/use-sessions';

/** The parts of a session's page that stand in a frame: no way out of it, and no log, which has a frame of its own. */
export function EmbedPanes(props: SessionParts & { nonce: string | undefined }) {
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
        // the way back belongs to the page around this one
        leaves="replace"
      />
    </main>
  );
}
