'use client';

import { clsx } from 'clsx';
import { createContext, type ReactNode, useContext, useId, useState } from 'react';

/**
 * Called before a reader unfolds something: they read there now, so what follows its own end stops following it, and
 * what they opened stays where it is.
 */
export const HoldTail = createContext<() => void>(() => {});

export function useHoldTail(): () => void {
  return useContext(HoldTail);
}

/** Marks what unfolds more of a part: what stands below it moves. */
export const UNFOLDS = 'data-unfolds';

/** A part that opens below its button. @returns whether it is open, its id, and the button's props */
export function useDisclosure(isOpenAtFirst = false) {
  const [open, setOpen] = useState(isOpenAtFirst);
  const id = useId();
  const hold = useHoldTail();
  const onClick = () => {
    hold();
    setOpen(!open);
  };
  return { open, id, button: { 'aria-expanded': open, 'aria-controls': open ? id : undefined, onClick } };
}

/** Shows more where it stands. */
export function UnfoldButton(props: { onPress: () => void; className?: string; children: ReactNode }) {
  const { onPress, className, children } = props;
  const hold = useHoldTail();
  return (
    <button
      type="button"
      {...{ [UNFOLDS]: '' }}
      onClick={() => {
        hold();
        onPress();
      }}
      className={clsx('underline decoration-line-strong underline-offset-2 hover:text-ink', className)}
    >
      {children}
    </button>
  );
}
