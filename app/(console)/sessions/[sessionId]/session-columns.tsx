import { useCallback, useState } from 'react';
import { useOutgoing } from '@/components/composer/outgoing-queue';
import { TaskPanel } from '@/components/tasks/task-panel';
import { measureMarkup } from '@/components/transcript/server-markup';
import { type Jump, JumpProvider, setAddressAnchor } from '@/components/ui/jump';
import { ServedOnDemand } from '@/components/ui/on-demand';
import { SessionFoot } from './session-foot';
import { type useNamedTasks, useSessionScope } from './session-scope';
import type { SessionParts } from './session-stores';
import { transcriptCode } from './transcript-code';

/**
 * Jumps to an anchor in the transcript, which has to be shown first.
 *
 * @param historyUpdate how a jump updates the history before the transcript has loaded
 */
export function useSessionJump(
  showTranscript: () => void,
  historyUpdate: Parameters<typeof setAddressAnchor>[1],
): Jump {
  const { shown } = useSessionScope();
  return useCallback<Jump>(
    (anchor) => {
      showTranscript();
      // Only the transcript can jump to items that are not loaded. It reads the URL when it loads.
      if (shown.current === null) setAddressAnchor(anchor, historyUpdate);
      else shown.current.jump(anchor);
    },
    [shown, showTranscript, historyUpdate],
  );
}

interface SessionColumnsProps extends SessionParts {
  nonce: string | undefined;
  named: ReturnType<typeof useNamedTasks>;
  jump: Jump;
}

/** A session's transcript with the composer below and, on wide screens, its tasks beside it. */
export function SessionColumns({ nonce, named, jump, toast, showToast }: SessionColumnsProps) {
  const { sessionId, shown } = useSessionScope();
  const { queue } = useOutgoing(sessionId);
  const [sentCount, setSentCount] = useState(0);
  const [hasTranscript, setHasTranscript] = useState(false);
  const onTranscript = useCallback(() => setHasTranscript(true), []);
  return (
    <JumpProvider jump={jump}>
      <div className="flex min-h-0 flex-1">
        <div className="flex min-h-0 min-w-0 flex-1 flex-col [--beside:0px]">
          <TranscriptOnDemand nonce={nonce} sentCount={sentCount} onEnd={onTranscript} showToast={showToast} />
          <SessionFoot
            pins={hasTranscript}
            toast={toast}
            showToast={showToast}
            onSend={(text, replyTo, attachments) => {
              queue?.post(text, replyTo, attachments);
              setSentCount((count) => count + 1);
            }}
            onLeave={() => shown.current?.focus()}
          />
        </div>
        {named.tasks.length > 0 && (
          <div className="flex min-h-0 w-[320px] shrink-0 flex-col border-l max-2xl:hidden">
            <TaskPanel {...named} />
          </div>
        )}
      </div>
    </JumpProvider>
  );
}

/** A session's transcript: server markup until its code has loaded. */
function TranscriptOnDemand(props: {
  nonce: string | undefined;
  sentCount: number;
  onEnd: () => void;
  showToast: (text: string) => void;
}) {
  const { nonce, sentCount, onEnd, showToast } = props;
  return (
    <ServedOnDemand
      code={transcriptCode}
      name="The live transcript"
      props={{ nonce, sentCount, painted: null, showToast }}
      read={(markup) => ({ painted: measureMarkup(markup) })}
      wait={
        <p role="status" className="session-column min-h-0 w-full flex-1 py-4 text-ink-3 text-xs">
          Loading the transcript…
        </p>
      }
      onEnd={onEnd}
    />
  );
}
