'use client';

import { clsx } from 'clsx';
import { useCallback, useState } from 'react';
import { flushSync } from 'react-dom';
import { useOutgoing } from '@/components/composer/use-outgoing';
import { setAddressAnchor } from '@/components/ui/address-anchor';
import { type Jump, JumpProvider } from '@/components/ui/jump';
import { SessionFoot } from './session-foot';
import { SessionHeader } from './session-header';
import { SessionLog } from './session-log';
import { useSessionScope } from './session-scope';
import type { SessionParts } from './session-stores';
import { TaskPane } from './task-pane';
import { TranscriptOnDemand } from './transcript-on-demand';
import { useLogPanel } from './use-log-panel';
import { useNamedTasks } from './use-named-tasks';

/** How the parts of a session's page share its room: the transcript, on wide screens its tasks beside it, and the log. */
export function SessionPanes(props: SessionParts & { nonce: string | undefined }) {
  const { sessionId, shown } = useSessionScope();
  const { tasks, omitted } = useNamedTasks();
  const { queue } = useOutgoing(sessionId);
  const panel = useLogPanel();
  const [showsTasks, setShowsTasks] = useState(false);
  const [sentCount, setSentCount] = useState(0);
  const [knowsSight, setKnowsSight] = useState(false);
  const onTranscript = useCallback(() => setKnowsSight(true), []);

  // The panel stands outside the transcript, which alone knows how to reach a place that is not loaded.
  const jump = useCallback<Jump>(
    (anchor) => {
      // What is covered can't be scrolled.
      if (!matchMedia('(min-width: 1024px)').matches) flushSync(() => setShowsTasks(false));
      // A transcript that is yet to come goes by the address.
      if (shown.current === null) setAddressAnchor(anchor, 'push');
      else shown.current.jump(anchor);
    },
    [shown],
  );

  return (
    <main className="relative flex h-full min-h-0 flex-col">
      <SessionLog panel={panel} tasks={tasks}>
        <div inert={panel.open && panel.covers} className="flex min-h-0 flex-1">
          <div className={clsx('flex min-h-0 min-w-0 flex-1 flex-col', showsTasks && 'max-lg:hidden')}>
            <SessionHeader taskCount={tasks.length} onTasks={() => setShowsTasks(!showsTasks)} log={panel} />
            <TranscriptOnDemand nonce={props.nonce} sentCount={sentCount} onEnd={onTranscript} />
            <JumpProvider jump={jump}>
              <SessionFoot
                actions={props.actions}
                pins={knowsSight}
                toast={props.toast}
                say={props.say}
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
      </SessionLog>
    </main>
  );
}
