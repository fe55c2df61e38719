import { clsx } from 'clsx';
import { type ReactNode, useCallback, useState } from 'react';
import { flushSync } from 'react-dom';
import { useOutgoing } from '@/components/composer/outgoing-queue';
import { type Jump, JumpProvider, setAddressAnchor } from '@/components/ui/jump';
import { SessionFoot } from './session-foot';
import { useSessionScope } from './session-scope';
import type { SessionParts } from './session-stores';
import { TaskPane } from './task-pane';
import { TranscriptOnDemand } from './transcript-on-demand';
import type { useNamedTasks } from './use-named-tasks';

interface SessionColumnsProps extends SessionParts {
  nonce: string | undefined;
  named: ReturnType<typeof useNamedTasks>;
  /** What stands above the transcript; `onTasks` shows and hides the tasks. */
  head: (onTasks: () => void) => ReactNode;
  /** What the way back makes of a jump to what is yet to come. */
  leaves: Parameters<typeof setAddressAnchor>[1];
}

/** A session's transcript with what one writes below it and, where there is room, its tasks beside it. */
export function SessionColumns({ nonce, named, head, leaves, actions, toast, say }: SessionColumnsProps) {
  const { sessionId, shown } = useSessionScope();
  const { queue } = useOutgoing(sessionId);
  const [showsTasks, setShowsTasks] = useState(false);
  const [sentCount, setSentCount] = useState(0);
  const [knowsSight, setKnowsSight] = useState(false);
  const onTranscript = useCallback(() => setKnowsSight(true), []);

  // The tasks stand outside the transcript, which alone knows how to reach a place that is not loaded.
  const jump = useCallback<Jump>(
    (anchor) => {
      // What is covered can't be scrolled.
      if (!matchMedia('(min-width: 1024px)').matches) flushSync(() => setShowsTasks(false));
      // A transcript that is yet to come goes by the address.
      if (shown.current === null) setAddressAnchor(anchor, leaves);
      else shown.current.jump(anchor);
    },
    [shown, leaves],
  );

  return (
    <>
      <div className={clsx('flex min-h-0 min-w-0 flex-1 flex-col', showsTasks && 'max-lg:hidden')}>
        {head(() => setShowsTasks(!showsTasks))}
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
      <TaskPane {...named} isShown={showsTasks} onClose={() => setShowsTasks(false)} jump={jump} />
    </>
  );
}
