'use client';

import type { Arrange } from '@interlude/protocol/commands';
import { MAX_SESSION_NAME } from '@interlude/protocol/limits';
import type { ArrangementAnswer, SessionSummary } from '@interlude/protocol/read-models';
import { isSeen, reviewedSince } from '@interlude/protocol/session-predicates';
import { type FormEvent, type RefObject, useState } from 'react';
import { putJson } from '@/components/live/fetch-json';
import { useSupportsCommand } from '@/components/live/refusals';
import { SignOut } from '@/components/live/sign-out';
import { useLiveness } from '@/components/ui/liveness';
import { ButtonPopover } from '@/components/ui/popover';
import { EndSession } from './end-session';
import { sessionTitle, standingOf } from './session-words';
import { WakeSwitch } from './wake-switch';

const ACTION = 'h-7 rounded border border-line px-2.5 hover:border-ink disabled:opacity-50';

/** To name a session, pin, archive or end it, to say that its failure has been seen, and when its agent is to be woken. */
export function ArrangePopover(props: {
  session: SessionSummary;
  button: RefObject<HTMLElement | null>;
  onClose: () => void;
}) {
  const { session, button, onClose } = props;
  const { name, pinnedAt, archivedAt } = session.arrangement;
  const [text, setText] = useState(name ?? sessionTitle(session));
  const [isAsking, setAsking] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const canWake = useSupportsCommand('wake-rule.set');
  const isTaken = useSupportsCommand('session.end');
  const { stopped, isAway } = useLiveness();
  const canEnd = isTaken && stopped === null && !isAway && session.state !== 'exited';
  const standing = standingOf(session);
  const hasFailed = standing === 'failed' || standing === 'lost';

  const arrange = async (change: Arrange) => {
    setAsking(true);
    setError(null);
    try {
      await putJson<ArrangementAnswer>(`/sessions/${encodeURIComponent(session.id)}/arrangement`, change);
      onClose();
    } catch (failure) {
      setError((failure as Error).message);
    } finally {
      setAsking(false);
    }
  };
  const rename = (event: FormEvent) => {
    event.preventDefault();
    void arrange({ name: text.trim() === '' || text === session.title ? null : text });
  };

  return (
    <ButtonPopover label="Arrange this session" button={button} onClose={onClose}>
      <form onSubmit={rename} className="flex items-end gap-2 px-3 py-1.5 text-xs">
        <label className="flex min-w-0 flex-1 flex-col gap-1">
          <span className="text-ink-3">Name</span>
          <input
            dir="auto"
            value={text}
            maxLength={MAX_SESSION_NAME}
            onChange={(event) => setText(event.target.value)}
            className="h-7 min-w-0 rounded border border-line bg-transparent px-2 focus:border-accent focus:outline-none"
          />
        </label>
        <button type="submit" disabled={isAsking} className={ACTION}>
          Rename
        </button>
      </form>
      <div className="flex flex-wrap gap-2 px-3 pt-1 pb-1.5 text-xs">
        <button
          type="button"
          disabled={isAsking}
          onClick={() => void arrange({ pinned: pinnedAt === null })}
          className={ACTION}
        >
          {pinnedAt === null ? 'Pin' : 'Unpin'}
        </button>
        <button
          type="button"
          disabled={isAsking}
          onClick={() => void arrange({ archived: archivedAt === null })}
          className={ACTION}
        >
          {archivedAt === null ? 'Archive' : 'Take out of the archive'}
        </button>
        {hasFailed && (
          <button
            type="button"
            disabled={isAsking}
            onClick={() => void arrange({ seenState: isSeen(session) ? null : reviewedSince(session) })}
            className={ACTION}
          >
            {isSeen(session) ? 'Mark as not seen' : 'Mark as seen'}
          </button>
        )}
      </div>
      {canWake && <WakeSwitch session={session} />}
      {canEnd && <EndSession sessionId={session.id} onAsked={onClose} />}
      <SignOut
        label="Sign out of Interlude"
        className={ACTION}
        formClassName="border-line border-t px-3 pt-1.5 pb-1 text-xs sm:hidden"
      />
      {error !== null && (
        <p role="alert" className="px-3 pb-1.5 text-failed text-xs">
          {error}
        </p>
      )}
    </ButtonPopover>
  );
}
