'use client';

import type { SessionSummary } from '@interlude/protocol/read-models';
import type { RefObject } from 'react';
import { ButtonPopover } from '@/components/ui/button-popover';
import { Ago } from '@/components/ui/clock';
import { Quoted, Words } from '@/components/ui/name';
import { plainWords } from '@/components/ui/plain-words';
import { AcceptReply } from './accept-reply';
import { SettledList } from './settled-list';
import { useOwed } from './use-obligations';
import { Waive } from './waive';

/** Beneath the button that opened it: to whom the agent owes a reply, since when and to what. */
export function OwedPopover(props: {
  session: SessionSummary;
  button: RefObject<HTMLElement | null>;
  onClose: () => void;
}) {
  const { session, button, onClose } = props;
  return (
    <ButtonPopover label="Replies owed" button={button} onClose={onClose}>
      <OwedList session={session} onLeave={onClose} />
      <SettledList session={session} onLeave={onClose} />
    </ButtonPopover>
  );
}

function OwedList({ session, onLeave }: { session: SessionSummary; onLeave: () => void }) {
  const { owed, query } = useOwed(session, true);
  if (query.isError) return <p className="px-3 py-2 text-failed text-xs">{query.error.message}</p>;
  if (owed === undefined) return <p className="px-3 py-2 text-ink-3 text-xs">Loading…</p>;
  return (
    <ul>
      {owed.map(({ messageId, from, text, sentAt, owedSince, isOverdue, candidate }) => (
        <li key={messageId} className="flex flex-col border-line border-b pb-1 last:border-0">
          <a
            href={`#${encodeURIComponent(`message-${messageId}`)}`}
            onClick={onLeave}
            className="block px-3 py-1.5 -outline-offset-2 hover:bg-raised/60"
          >
            <span className="flex items-baseline gap-2 text-2xs text-ink-3">
              <span className="min-w-0 flex-1 truncate">
                {from.kind === 'agent' ? 'agent ' : ''}
                <Quoted text={from.id} />
              </span>
              {isOverdue === true && <span className="font-medium text-waiting">overdue</span>}
              <Ago at={owedSince ?? sentAt} />
            </span>
            <span dir="auto" className="block truncate text-xs">
              <Words text={plainWords(text)} />
            </span>
          </a>
          <span className="flex flex-col gap-1 px-3">
            {candidate != null && <AcceptReply sessionId={session.id} messageId={messageId} candidate={candidate} />}
            <Waive sessionId={session.id} messageId={messageId} />
          </span>
        </li>
      ))}
    </ul>
  );
}
