import { clsx } from 'clsx';
import { type ReactNode, useCallback, useState } from 'react';
import { flushSync } from 'react-dom';
import { useOutgoing } from '@/components/composer/outgoing-queue';
import { TaskPanel } from '@/components/tasks/task-panel';
import { measureMarkup } from '@/components/transcript/server-markup';
import { type Jump, JumpProvider, setAddressAnchor } from '@/components/ui/jump';
import { ServedOnDemand } from '@/components/ui/on-demand';
import { SessionFoot } from './session-foot';
import { type useNamedTasks, useSessionScope } from './session-scope';
import type { SessionParts } from './session-stores';
import { transcriptCode } from './transcript-code';

interface SessionColumnsProps extends SessionParts {
  nonce: string | undefined;
  named: ReturnType<typeof useNamedTasks>;
  /** Renders the header; `onTasks` toggles the tasks. */
  head: (onTasks: () => void) => ReactNode;
  /** How a jump updates the history before the transcript has loaded. */
  historyUpdate: Parameters<typeof setAddressAnchor>[1];
}

/** A session's transcript with the composer below and, on wide screens, its tasks beside it. */
export function SessionColumns({ nonce, named, head, historyUpdate, actions, toast, showToast }: SessionColumnsProps) {
  const { sessionId, shown } = useSessionScope();
  const { queue } = useOutgoing(sessionId);
  const [showsTasks, setShowsTasks] = useState(false);
  const [sentCount, setSentCount] = useState(0);
  const [hasTranscript, setHasTranscript] = useState(false);
  const onTranscript = useCallback(() => setHasTranscript(true), []);

  // Only the transcript can jump to items that are not loaded.
  const jump = useCallback<Jump>(
    (anchor) => {
      // A hidden transcript can't scroll.
      if (!matchMedia('(min-width: 1024px)').matches) flushSync(() => setShowsTasks(false));
      // The transcript reads the URL when it loads.
      if (shown.current === null) setAddressAnchor(anchor, historyUpdate);
      else shown.current.jump(anchor);
    },
    [shown, historyUpdate],
  );

  return (
    <>
      <div className={clsx('flex min-h-0 min-w-0 flex-1 flex-col', showsTasks && 'max-lg:hidden')}>
        {head(() => setShowsTasks(!showsTasks))}
        <TranscriptOnDemand nonce={nonce} sentCount={sentCount} onEnd={onTranscript} />
        <JumpProvider jump={jump}>
          <SessionFoot
            actions={actions}
            pins={hasTranscript}
            toast={toast}
            showToast={showToast}
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

/** A session's tasks: beside the transcript, or in its place on a phone. */
function TaskPane(props: ReturnType<typeof useNamedTasks> & { isShown: boolean; onClose: () => void; jump: Jump }) {
  const { tasks, omitted, isShown, onClose, jump } = props;
  if (tasks.length === 0) return null;
  return (
    <div
      className={clsx(
        'min-h-0 flex-col border-l 2xl:flex 2xl:w-[320px] 2xl:shrink-0',
        isShown ? 'flex w-full lg:w-[280px] lg:shrink-0' : 'hidden',
      )}
    >
      {isShown && (
        <button
          type="button"
          onClick={onClose}
          className="px-5 pt-3 text-left text-ink-3 text-xs underline hover:text-ink lg:hidden"
        >
          Back to the transcript
        </button>
      )}
      <JumpProvider jump={jump}>
        <TaskPanel tasks={tasks} omitted={omitted} />
      </JumpProvider>
    </div>
  );
}

/** A session's transcript: server markup until its code has loaded. */
function TranscriptOnDemand(props: { nonce: string | undefined; sentCount: number; onEnd: () => void }) {
  const { nonce, sentCount, onEnd } = props;
  return (
    <ServedOnDemand
      code={transcriptCode}
      name="The live transcript"
      props={{ nonce, sentCount, painted: null }}
      read={(markup) => ({ painted: measureMarkup(markup) })}
      wait={
        <p role="status" className="min-h-0 flex-1 px-6 py-4 text-ink-3 text-xs sm:pl-[84px]">
          Loading the transcript…
        </p>
      }
      onEnd={onEnd}
    />
  );
}
