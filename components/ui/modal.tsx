'use client';

import { clsx } from 'clsx';
import { type ReactNode, useLayoutEffect, useRef } from 'react';
import { useOpenDialog } from './shortcuts/use-shortcuts';

/** A modal dialog. Esc and a press on the backdrop close it. The focus returns to where it was. */
export function Modal(props: { label: string; onClose: () => void; className: string; children: ReactNode }) {
  const { label, onClose, className, children } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  useOpenDialog();
  // Closes on unmount. Closed earlier, the hidden dialog would still capture keys until its `close` event, which is a
  // later task.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-label={label}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      // Browsers ignore `preventDefault` on a second cancel. React's strict mode closes and reopens the dialog.
      onClose={(event) => event.currentTarget.open || onClose()}
      // The target of a press on the backdrop is the dialog itself.
      onPointerDown={(event) => event.target === event.currentTarget && onClose()}
      className={clsx('bg-ground p-0 text-ink shadow-2xl backdrop:bg-black/40', className)}
    >
      {children}
    </dialog>
  );
}
