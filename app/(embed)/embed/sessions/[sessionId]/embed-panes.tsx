'use client';

import { clsx } from 'clsx';
import { useCallback, useState } from 'react';
import { flushSync } from 'react-dom';
import { SessionFacts } from '@/app/(console)/sessions/[sessionId]/session-facts';
import { SessionFoot } from '@/app/(console)/sessions/[sessionId]/session-foot';
import { useSessionScope } from '@/app/(console)/sessions/[sessionId]/session-scope';
import type { SessionParts } from '@/app/(console)/sessions/[sessionId]/session-stores';
import { TaskPane } from '@/app/(console)/sessions/[sessionId]/task-pane';
import { TranscriptOnDemand } from '@/app/(console)/sessions/[sessionId]/transcript-on-demand';
import { useNamedTasks } from '@/app/(console)/sessions/[sessionId]/use-named-tasks';
import { useOutgoing } from '@/components/composer/use-outgoing';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { useSession } from '@/components/sessions/use-sessions';
import { setAddressAnchor } from '@/components/ui/address-anchor';
import { type Jump, JumpProvider } from '@/components/ui/jump';

/** The parts of a session's page that stand in a frame: no way out of it, and no log, which has a frame of its own. */
export function EmbedPanes({ nonce, actions, toast, say }: SessionParts & { nonce: string | undefined }) {
  const { sessionId, shown } = useSessionScope();
  const session = useSession(sessionId);
  const { tasks, omitted } = useNamedTasks();
  const { queue } = useOutgoing(sessionId);
  const [showsTasks, setShowsTasks] = useState(false);
  const [sentCount, setSentCount] = useState(0);
  const [knowsSight, setKnowsSight] = useState(false);
  const onTranscript = useCallback(() => setKnowsSight(true), []);
  const jump = useCallback<Jump>(
    (anchor) => {
      // What is covered can't be scrolled.
      flushSync(() => setShowsTasks(false));
      // The way back belongs to the page around this one.
      if (shown.current === null) setAddressAnchor(anchor, 'replace');
      else shown.current.jump(anchor);
    },
    [shown],
  );
  return (
    <main className="relative flex h-full min-h-0 flex-col">
      <header className="flex shrink-0 items-start gap-3 border-line border-b px-4 py-2 sm:px-6">
        <SessionFacts
          session={session}
          taskCount={tasks.length}
          onTasks={() => setShowsTasks(!showsTasks)}
          hasLinks={false}
        />
        <div className="mt-[3px]">
          <ConnectionBadge />
        </div>
      </header>
      <div className="flex min-h-0 flex-1">
        <div className={clsx('flex min-h-0 min-w-0 flex-1 flex-col', showsTasks && 'max-lg:hidden')}>
          <TranscriptOnDemand nonce={nonce} sentCount={sentCount} onEnd={onTranscript} />
          <JumpProvider jump={jump}>
            <SessionFoot
              actions={actions}
              pins={knowsSight}
              toast={toast}
              say={say}
              onSend={(text, replyTo, attachments) => {
                queue?.post(text, replyTo, attachments);
                setSentCount((count) => count + 1);
              }}
              onLeave={() => shown.current?.focus()}
            />
          </JumpProvider>
        </div>
        <TaskPane
          tasks={tasks}
          omitted={omitted}
          isShown={showsTasks}
          onClose={() => setShowsTasks(false)}
          jump={jump}
        />
      </div>
    </main>
  );
}
