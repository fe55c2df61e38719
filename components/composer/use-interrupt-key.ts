'use client';

import { useEffect, useEffectEvent } from 'react';
import type { useInterrupt } from './interrupt';

/**
 * Ctrl+. (⌘. on a Mac) interrupts, from anywhere on the page. Nobody presses it while they mean something else, as they do
 * Esc, which leads out of fields, lists and panes.
 */
export function useInterruptKey(interrupt: ReturnType<typeof useInterrupt>): void {
  const press = useEffectEvent((event: KeyboardEvent) => {
    if (interrupt === null) return;
    event.preventDefault();
    // Whoever presses it in a hurry means the turn before.
    if (!interrupt.isAsked && interrupt.isMeant()) interrupt.ask();
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== '.' || event.ctrlKey === event.metaKey || event.altKey) return;
      if (event.repeat || event.isComposing || event.defaultPrevented || document.querySelector('dialog[open]')) return;
      press(event);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}
