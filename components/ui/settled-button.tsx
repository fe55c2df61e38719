'use client';

import { clsx } from 'clsx';
import { type ReactNode, useRef } from 'react';
import { useSettled } from './use-settled';

/**
 * For what can't be taken back, where rows come and go: it takes no press that was meant for what stood there before.
 *
 * @param of what it is about; about something else it is a new one
 */
export function SettledButton(props: {
  of: string;
  onPress: () => void;
  onBlur?: () => void;
  disabled?: boolean | undefined;
  /** Where it is not what stands on it. */
  label?: string | undefined;
  className?: string;
  children: ReactNode;
}) {
  const { of, onPress, onBlur, disabled = false, label, className, children } = props;
  const button = useRef<HTMLButtonElement>(null);
  const { settled, isMeant } = useSettled(button, of);
  return (
    <button
      ref={button}
      type="button"
      disabled={disabled}
      aria-label={label}
      // It keeps the focus and its place: it is only for a moment.
      aria-disabled={disabled || !settled}
      onClick={() => isMeant() && onPress()}
      onBlur={onBlur}
      className={clsx('transition-colors duration-300 aria-disabled:cursor-default', className)}
    >
      {children}
    </button>
  );
}
