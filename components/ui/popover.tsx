'use client';

import { clsx } from 'clsx';
import { Popover } from 'radix-ui';
import { type ComponentProps, type ReactNode, type RefObject, useRef } from 'react';
import { OVERLAY } from './in-view';
import { useOpenDialog } from './shortcuts/use-shortcuts';

/** Popover content. Esc closes it and does not propagate. */
function PopoverPanel({ className, onCloseAutoFocus, ...props }: ComponentProps<typeof Popover.Content>) {
  return (
    <Popover.Portal>
      <Panel
        sideOffset={6}
        collisionPadding={12}
        onEscapeKeyDown={(event) => event.stopPropagation()}
        onCloseAutoFocus={(event) => {
          // Radix calls this from a timer. By then another popover may have the focus, and would close on losing it.
          if (document.activeElement === document.body) onCloseAutoFocus?.(event);
          else event.preventDefault();
        }}
        {...OVERLAY}
        {...props}
        className={clsx(
          'z-30 max-h-[60dvh] overflow-y-auto rounded-md border border-line-strong bg-ground shadow-xl focus-quiet',
          className,
        )}
      />
    </Popover.Portal>
  );
}

/** Mounted only while open, which is when the hook must run. */
function Panel(props: ComponentProps<typeof Popover.Content>) {
  useOpenDialog();
  return <Popover.Content {...props} />;
}

/**
 * A popover below a button that is rendered elsewhere, so that the popover can load on demand.
 *
 * @param props.isText true for content to read: the focus stays on the panel instead of its first control
 */
export function ButtonPopover(props: {
  label: string;
  button: RefObject<HTMLElement | null>;
  onClose: () => void;
  align?: 'start' | 'end';
  isText?: boolean;
  className?: string;
  children: ReactNode;
}) {
  const { label, button, onClose, align = 'start', isText = false, className, children } = props;
  const leftByPress = useRef(false);
  return (
    <Popover.Root open onOpenChange={(open) => !open && onClose()}>
      <Popover.Anchor virtualRef={button as RefObject<HTMLElement>} />
      <PopoverPanel
        align={align}
        aria-label={label}
        onOpenAutoFocus={(event) => {
          if (!isText) return;
          event.preventDefault();
          (event.target as HTMLElement).focus();
        }}
        onInteractOutside={(event) => {
          // The button's own handler closes the popover.
          if (button.current?.contains(event.target as Node)) event.preventDefault();
          else leftByPress.current = true;
        }}
        onCloseAutoFocus={(event) => {
          event.preventDefault();
          if (!leftByPress.current) button.current?.focus();
        }}
        className={className ?? 'w-[min(420px,calc(100vw-24px))] py-1'}
      >
        {children}
      </PopoverPanel>
    </Popover.Root>
  );
}
