'use client';

import { clsx } from 'clsx';
import { createContext, type ReactNode, useContext } from 'react';

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

/** Shows more of a text where it stands. */
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
