'use client';

import { Keyboard } from 'lucide';
import { useState } from 'react';
import { createPortal } from 'react-dom';
import { Icon } from '../icon';
import { CodeOnDemand, OnDemand, usePreload } from '../on-demand';
import { useKeyTitle, useShortcuts } from './use-shortcuts';

const dialogCode = new CodeOnDemand(async () => (await import('./shortcut-dialog')).ShortcutDialog);

/** A button, also on "?", that opens the list of shortcuts. */
export function ShortcutHelp() {
  const [isOpen, setOpen] = useState(false);
  usePreload(dialogCode);
  const title = useKeyTitle('Keyboard shortcuts', 'help');
  useShortcuts({ help: isOpen ? null : () => setOpen(true) });
  return (
    <>
      <button
        type="button"
        aria-label="Keyboard shortcuts"
        title={title}
        onClick={() => setOpen(true)}
        className="hit grid size-5 place-items-center text-ink-3 hover:text-ink"
      >
        <Icon of={Keyboard} size={14} strokeWidth={1.75} />
      </button>
      {isOpen &&
        // Rendered in the body, because narrow screens hide this button's container.
        createPortal(
          <OnDemand code={dialogCode} name="The list of shortcuts" props={{ onClose: () => setOpen(false) }} />,
          document.body,
        )}
    </>
  );
}
