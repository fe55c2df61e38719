'use client';

import { Popover } from 'radix-ui';
import { type ReactNode, type RefObject, useRef } from 'react';
import { PopoverPanel } from './popover-panel';

/** Beneath the button that opened it, which stands elsewhere, in code that came before. */
export function ButtonPopover(props: {
  label: string;
  button: RefObject<HTMLElement | null>;
  onClose: () => void;
  className?: string;
  children: ReactNode;
}) {
  const { label, button, onClose, className = 'w-[min(420px,calc(100vw-24px))] py-1', children } = props;
  const leftByPress = useRef(false);
  return (
    <Popover.Root open onOpenChange={(open) => !open && onClose()}>
      <Popover.Anchor virtualRef={button as RefObject<HTMLElement>} />
      <PopoverPanel
        align="start"
        aria-label={label}
        onInteractOutside={(event) => {
          // The button closes what it opened by itself.
          if (button.current?.contains(event.target as Node)) event.preventDefault();
          else leftByPress.current = true;
        }}
        onCloseAutoFocus={(event) => {
          event.preventDefault();
          if (!leftByPress.current) button.current?.focus();
        }}
        className={className}
      >
        {children}
      </PopoverPanel>
    </Popover.Root>
  );
}
