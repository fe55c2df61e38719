'use client';

import { Keyboard } from 'lucide-react';
import { useState } from 'react';
import { CodeOnDemand, OnDemand, usePreload } from '../on-demand';
import { useShortcuts } from './use-shortcuts';

const dialogCode = new CodeOnDemand(async () => (await import('./shortcut-dialog')).ShortcutDialog);

/** The list of shortcuts, on "?" or from its button. */
export function ShortcutHelp() {
  const [isOpen, setOpen] = useState(false);
  usePreload(dialogCode);
  useShortcuts({ help: isOpen ? null : () => setOpen(true) });
  return (
    <>
      <button
        type="button"
        aria-label="Keyboard shortcuts"
        title="Keyboard shortcuts (?)"
        onClick={() => setOpen(true)}
        className="hit grid size-5 place-items-center text-ink-3 hover:text-ink"
      >
        <Keyboard size={14} strokeWidth={1.75} aria-hidden="true" />
      </button>
      {isOpen && <OnDemand code={dialogCode} name="The list of shortcuts" props={{ onClose: () => setOpen(false) }} />}
    </>
  );
}
