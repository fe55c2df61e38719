'use client';

import type { SessionSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useRef, useState } from 'react';
import { plural } from '@/components/ui/duration';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';

const popoverCode = new CodeOnDemand(async () => (await import('./obligations-popover')).ObligationsPopover);

/** Number of a session's pending replies. Opens their list. */
export function ObligationsButton({ session }: { session: SessionSummary }) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  usePreload(popoverCode);
  if (session.owedCount === 0) return null;
  return (
    <>
      <button
        ref={button}
        type="button"
        aria-haspopup="dialog"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className={clsx(
          '-my-1 py-1 text-start hover:text-ink pointer-coarse:my-0 hover:underline aria-expanded:text-ink',
          // On a phone, the agent's name needs the room, and each message shows whether it waits for a reply.
          session.overdueCount === 0 && 'max-sm:hidden',
        )}
      >
        {pendingText(session)}
      </button>
      {open && (
        <OnDemand
          code={popoverCode}
          name="The list of pending replies"
          props={{ session, button, onClose: () => setOpen(false) }}
        />
      )}
    </>
  );
}

/** `1 pending reply`, `2 replies overdue`, `3 pending replies, 1 overdue`. */
function pendingText({ owedCount, overdueCount }: SessionSummary): string {
  if (overdueCount === owedCount) return `${plural(owedCount, 'reply', 'replies')} overdue`;
  const replies = plural(owedCount, 'pending reply', 'pending replies');
  return overdueCount > 0 ? `${replies}, ${overdueCount} overdue` : replies;
}
