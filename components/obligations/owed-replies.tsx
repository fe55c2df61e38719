'use client';

import { Popover } from 'radix-ui';
import { useState } from 'react';
import { Ago } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { OVER } from '@/components/ui/in-view';
import { Name, Words } from '@/components/ui/name';
import { plainWords } from '@/components/ui/plain-words';
import type { SessionSummary } from '@/lib/protocol/read-models';
import { useOwed } from './use-obligations';
import { Waive } from './waive';

/** How many replies a session's agent owes, and on asking whom, since when and to what. */
export function OwedReplies({ session }: { session: SessionSummary }) {
  const [open, setOpen] = useState(false);
  if (session.owedCount === 0) return null;
  return (
    <Popover.Root open={open} onOpenChange={setOpen}>
      <Popover.Trigger className="text-start hover:text-ink hover:underline data-[state=open]:text-ink">
        owes {plural(session.owedCount, 'reply', 'replies')}
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="start"
          sideOffset={6}
          collisionPadding={12}
          aria-label="Replies owed"
          onEscapeKeyDown={(event) => event.stopPropagation()}
          {...OVER}
          className="z-30 max-h-[60dvh] w-[min(420px,calc(100vw-24px))] overflow-y-auto rounded-md border border-line-strong bg-ground py-1 shadow-xl outline-none"
        >
          <OwedList session={session} onLeave={() => setOpen(false)} />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function OwedList({ session, onLeave }: { session: SessionSummary; onLeave: () => void }) {
  const { owed, query } = useOwed(session, true);
  if (query.isError) return <p className="px-3 py-2 text-failed text-xs">{query.error.message}</p>;
  if (owed === undefined) return <p className="px-3 py-2 text-ink-3 text-xs">Loading…</p>;
  return (
    <ul>
      {owed.map(({ messageId, from, text, sentAt }) => (
        <li key={messageId} className="flex flex-col border-line border-b pb-1 last:border-0">
          <a
            href={`#${encodeURIComponent(`message-${messageId}`)}`}
            onClick={onLeave}
            className="block px-3 py-1.5 -outline-offset-2 hover:bg-raised/60"
          >
            <span className="flex items-baseline gap-2 text-2xs text-ink-3">
              <span className="min-w-0 flex-1 truncate">
                {from.kind === 'agent' ? 'agent ' : ''}
                <Name text={from.id} />
              </span>
              <Ago at={sentAt} />
            </span>
            <span dir="auto" className="block truncate text-xs">
              <Words text={plainWords(text)} />
            </span>
          </a>
          <span className="px-3">
            <Waive sessionId={session.id} messageId={messageId} />
          </span>
        </li>
      ))}
    </ul>
  );
}
