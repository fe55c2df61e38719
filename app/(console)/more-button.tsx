'use client';

import { type ReactNode, useState } from 'react';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import type { MoreLink } from './more-sheet';

const sheetCode = new CodeOnDemand(async () => (await import('./more-sheet')).MoreSheet);

/** The bottom bar’s button for the pages and tools that have no place in it. */
export function MoreButton({ links, children }: { links: readonly MoreLink[]; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  usePreload(sheetCode);
  return (
    <>
      <button
        type="button"
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
        className="flex flex-col items-center justify-center gap-0.5 text-2xs text-ink-2"
      >
        {children}
        More
      </button>
      {isOpen && <OnDemand code={sheetCode} name="The menu" props={{ links, onClose: () => setOpen(false) }} />}
    </>
  );
}
