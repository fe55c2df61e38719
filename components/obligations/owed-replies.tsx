'use client';

import type { SessionSummary } from '@interlude/protocol/read-models';
import { useRef, useState } from 'react';
import { plural } from '@/components/ui/duration';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';

const popoverCode = new CodeOnDemand(async () => (await import('./owed-popover')).OwedPopover);

/** How many replies a session's agent owes, and on asking whom, since when and to what. */
export function OwedReplies({ session }: { session: SessionSummary }) {
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
        className="text-start hover:text-ink hover:underline aria-expanded:text-ink"
      >
        owes {plural(session.owedCount, 'reply', 'replies')}
        {session.overdueCount > 0 && `, ${session.overdueCount} overdue`}
      </button>
      {open && (
        <OnDemand code={popoverCode} name="What is owed" props={{ session, button, onClose: () => setOpen(false) }} />
      )}
    </>
  );
}
