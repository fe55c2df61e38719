'use client';

import { clsx } from 'clsx';
import { type ReactNode, useEffect, useState } from 'react';
import { afterPress } from './after-press';
import { SettledButton } from './misclick-guard';

/** The first press expires after this time. */
const CONFIRM_MS = 4_000;

/**
 * A button for irreversible actions: the first press asks for confirmation, the second one acts. The first press expires
 * on blur and after `CONFIRM_MS`.
 */
export function ConfirmButton(props: {
  /** Identifies the subject; a change resets the button. */
  of: string;
  onPress: () => void;
  disabled?: boolean;
  label?: (isPressed: boolean) => string;
  className?: string;
  /** Class names before and after the first press. */
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
      // The two presses are different subjects, so each has to settle.
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
