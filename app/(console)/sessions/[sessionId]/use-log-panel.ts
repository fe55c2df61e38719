'use client';

import { useCallback, useEffect, useId, useRef, useState } from 'react';
import { useStored } from '@/components/ui/browser-storage';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { useMedia } from '@/components/ui/use-media';
import { useSessionScope } from './session-scope';
import type { SessionTab } from './session-tabs';

/** Screens too small for a log below the transcript. */
const NO_ROOM = '(max-width: 639.98px), (max-height: 479.98px)';

/**
 * Opens and closes the log by button, with the `l` key and on jumps into it: below the transcript, else in its tab. The
 * browser remembers that the log is open below the transcript.
 */
export function useLogPanel({ tab, select }: SessionTab) {
  const id = useId();
  const box = useRef<HTMLElement>(null);
  const { shown: transcript } = useSessionScope();
  const hasRoom = !useMedia(NO_ROOM);
  const [stored, store] = useStored('log-panel-open');
  const isBelow = hasRoom && tab === 'transcript';
  const open = isBelow ? stored === 'yes' : tab === 'log';
  /** The element that had the focus before the log took it. */
  const previousFocus = useRef<Element | null>(null);
  const [takesFocus, setTakesFocus] = useState(false);

  const setOpen = useCallback(
    (next: boolean) => {
      if (isBelow) store(next ? 'yes' : 'no');
      else select(next ? 'log' : 'transcript');
    },
    [isBelow, select, store],
  );
  const enter = useCallback(() => {
    previousFocus.current = document.activeElement;
    setTakesFocus(true);
    setOpen(true);
  }, [setOpen]);
  const close = useCallback(
    ({ restoresFocus = true } = {}) => {
      const focused = box.current?.contains(document.activeElement) ?? false;
      setTakesFocus(false);
      setOpen(false);
      // A transcript that was covered can take the focus in the next frame.
      if (!focused || !restoresFocus) return;
      requestAnimationFrame(() => {
        const { activeElement, body } = document;
        if (activeElement !== body && !box.current?.contains(activeElement)) return;
        const from = previousFocus.current;
        if (from instanceof HTMLElement && from.isConnected && from !== document.body) {
          from.focus({ preventScroll: true });
        } else transcript.current?.focus();
      });
    },
    [setOpen, transcript],
  );
  /** Opens the log for a jump. If the transcript stays visible, it keeps the focus. */
  const show = useCallback(() => {
    if (isBelow) setOpen(true);
    else enter();
  }, [isBelow, enter, setOpen]);

  const onKey = () => {
    const panel = box.current;
    if (!open) enter();
    else if (panel?.contains(document.activeElement)) close();
    else {
      previousFocus.current = document.activeElement;
      // The log takes the focus once it has loaded.
      setTakesFocus(true);
      (logElement(panel) ?? panel)?.focus();
    }
  };
  useShortcuts({ 'transcript.log': onKey });

  useEffect(() => {
    const panel = box.current;
    if (open && takesFocus && !panel?.contains(document.activeElement)) panel?.focus();
  }, [open, takesFocus]);

  // If the user moves the focus while the log loads, the log leaves it there.
  useEffect(() => {
    if (!takesFocus) return;
    const onFocusOut = ({ target, relatedTarget }: FocusEvent) => {
      const panel = box.current;
      if (!panel?.contains(target as Node) || panel.contains(relatedTarget as Node | null)) return;
      // switching windows doesn't count
      if (document.hasFocus()) setTakesFocus(false);
    };
    document.addEventListener('focusout', onFocusOut);
    return () => document.removeEventListener('focusout', onFocusOut);
  }, [takesFocus]);

  return { id, box, open, isBelow, hasRoom, takesFocus, toggle: open ? () => close() : enter, show, close };
}

function logElement(panel: HTMLElement | null): HTMLElement | null {
  return panel?.querySelector<HTMLElement>('[role="log"]') ?? null;
}
