'use client';

import type { SessionSummary } from '@interlude/protocol/read-models';
import { Ellipsis } from 'lucide';
import { useCallback, useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { Icon } from '@/components/ui/icon';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { useKeyTitle, useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

const menuCode = new CodeOnDemand(async () => (await import('./arrange-popover')).ArrangePopover);

export function SessionMenu({ session }: { session: SessionSummary }) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  usePreload(menuCode);
  const toggle = useCallback(() => setOpen((is) => !is), []);
  const mayAct = useMayAct();
  const title = useKeyTitle('Rename, pin or archive', 'session.arrange');
  useShortcuts({ 'session.arrange': mayAct ? toggle : null });
  if (!mayAct) return null;
  return (
    <>
      <button
        ref={button}
        type="button"
        title={title}
        aria-label="Manage this session"
        aria-haspopup="dialog"
        aria-expanded={open}
        onClick={toggle}
        className="hit -mx-[5px] -mt-[7px] -mb-[3px] px-[5px] pt-[7px] pb-[3px] text-ink-3 hover:text-ink aria-expanded:text-ink"
      >
        <Icon of={Ellipsis} size={15} />
      </button>
      {open && <OnDemand code={menuCode} name="The menu" props={{ session, button, onClose: () => setOpen(false) }} />}
    </>
  );
}
