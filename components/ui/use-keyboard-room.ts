'use client';

import { useEffect } from 'react';

/** Smaller changes are browser toolbars or the bar that a tablet shows with a hardware keyboard (55 to 75 px). */
const LEAST_KEYBOARD_PX = 120;

/**
 * Sets `--view-height` to the height above the on-screen keyboard while it covers the page. Safari on iOS ignores
 * `interactive-widget`: its keyboard changes only the visual viewport, and `dvh` ignores it.
 */
export function useKeyboardRoom(): void {
  useEffect(() => {
    const view = window.visualViewport;
    const root = document.documentElement;
    if (view == null) return;
    const fit = () => {
      const isCovered = Math.abs(view.scale - 1) < 0.01 && root.clientHeight - view.height > LEAST_KEYBOARD_PX;
      root.style.setProperty('--view-height', isCovered ? `${view.height}px` : '');
      if (!isCovered) return;
      // Undoes Safari's scroll: the field fits above the keyboard now.
      scrollTo(0, 0);
      document.activeElement?.scrollIntoView({ block: 'nearest' });
    };
    view.addEventListener('resize', fit);
    return () => view.removeEventListener('resize', fit);
  }, []);
}
