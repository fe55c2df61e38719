'use client';

import type { SessionAway, SessionSummary } from '@interlude/protocol/read-models';
import { CircleQuestionMark } from 'lucide';
import { useCallback, useRef, useState } from 'react';
import { Ago, TimeOfDay } from '@/components/ui/clock';
import { Icon } from '@/components/ui/icon';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { useKeyTitle, useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

const popoverCode = new CodeOnDemand(async () => (await import('./evidence-popover')).EvidencePopover);

export function StateWhy({ session }: { session: SessionSummary }) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  usePreload(popoverCode);
  const toggle = useCallback(() => setOpen((is) => !is), []);
  const title = useKeyTitle('Why?', 'session.why');
  useShortcuts({ 'session.why': toggle });
  return (
    <>
      <button
        ref={button}
        type="button"
        title={title}
        aria-label="Why this state?"
        aria-haspopup="dialog"
        aria-expanded={open}
        onClick={toggle}
        className="hit -m-1.5 shrink-0 p-1.5 text-ink-3 hover:text-ink hover:underline aria-expanded:text-ink"
      >
        <span className="max-sm:hidden">why?</span>
        <Icon of={CircleQuestionMark} size={13} className="sm:hidden" />
      </button>
      {open && (
        <OnDemand code={popoverCode} name="The evidence" props={{ session, button, onClose: () => setOpen(false) }} />
      )}
    </>
  );
}

/** `since 12:03 (4 min ago), last signal 12:02:58` */
export function Evidence({ away }: { away: SessionAway }) {
  return (
    <span className="tabular text-ink-2">
      since <TimeOfDay at={away.since} /> (<Ago at={away.since} inWords />
      ), last signal <TimeOfDay at={away.lastHeardAt} seconds />
    </span>
  );
}
