'use client';

import { Keyboard } from 'lucide';
import { useState } from 'react';
import { createPortal } from 'react-dom';
import { Icon } from '../icon';
import { CodeOnDemand, OnDemand, usePreload } from '../on-demand';
import { useKeyLabels, useShortcuts } from './use-shortcuts';

const dialogCode = new CodeOnDemand(async () => (await import('./shortcut-dialog')).ShortcutDialog);

/**
 * A button, also on "?", that opens the list of shortcuts.
 *
 * @param props.labelClassName of the label; `tip` makes it a tooltip
 */
export function ShortcutHelp(props: { className?: string; labelClassName?: string }) {
  const [isOpen, setOpen] = useState(false);
  usePreload(dialogCode);
  const [key] = useKeyLabels('help');
  useShortcuts({ help: isOpen ? null : () => setOpen(true) });
  return (
    <>
      <button type="button" onClick={() => setOpen(true)} className={props.className}>
        <Icon of={Keyboard} size={16} strokeWidth={1.75} className="shrink-0" />
        <span className={props.labelClassName}>
          Keyboard shortcuts <span data-key={key} aria-hidden="true" className="key" />
        </span>
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
