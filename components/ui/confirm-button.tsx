'use client';

import { clsx } from 'clsx';
import { type ReactNode, useEffect, useState } from 'react';
import { afterPress, SettledButton } from './misclick-guard';

/** How long a first press waits for the second. */
const CONFIRM_MS = 4_000;

/**
 * For what has no way back: the first press asks whether it is meant, and the second does it. It is taken back by
 * leaving the button, and by time.
 */
export function ConfirmButton(props: {
  /** What it is about; about something else it is a new one. */
  of: string;
  onPress: () => void;
  disabled?: boolean;
  label?: (isPressed: boolean) => string;
  className?: string;
  /** How it looks before it was pressed, and after. */
  looks: readonly [string, string];
  children: (isPressed: boolean) => ReactNode;
}) {
  const { of, onPress, disabled, label, className, looks, children } = props;
  const [isPressed, setPressed] = useState(false);
  useEffect(() => {
    if (!isPressed) return;
    const timer = setTimeout(() => setPressed(false), CONFIRM_MS);
    return () => clearTimeout(timer);
  }, [isPressed]);
  return (
    <SettledButton
      // What a first press asks is another question than what the second one answers.
      of={`${of}:${isPressed}`}
      label={label?.(isPressed)}
      disabled={disabled}
      onPress={() => {
        setPressed(!isPressed);
        if (isPressed) onPress();
      }}
      onBlur={() => afterPress(() => setPressed(false))}
      className={clsx('underline', className, looks[isPressed ? 1 : 0])}
    >
      {children(isPressed)}
    </SettledButton>
  );
}
