'use client';

import { useCallback, useEffect, useId, useRef, useState } from 'react';
import { useStored } from '@/components/ui/browser-storage';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { useMedia } from '@/components/ui/use-media';
import { useSessionScope } from './session-scope';

/** Where there is no room for both, the log takes the page's place. */
const NO_ROOM = '(max-width: 639.98px), (max-height: 479.98px)';

/**
 * Whether the log stands open, and how it opens and closes: by its button, by "l", and by what is shown in it. That it is
 * open is remembered; where it covers the transcript it is not, for a session opens with its transcript.
 */
export function useLogPanel() {
  const id = useId();
  const box = useRef<HTMLElement>(null);
  const { shown: transcript } = useSessionScope();
  const covers = useMedia(NO_ROOM);
  const [stored, store] = useStored('log-panel-open');
  const [covering, setCovering] = useState(false);
  const open = covers ? covering : stored === 'yes';
  /** Where the focus was, and whether it goes into the log. */
  const cameFrom = useRef<Element | null>(null);
  const [takesFocus, setTakesFocus] = useState(false);

  const setOpen = useCallback(
    (next: boolean) => {
      setCovering(next);
      if (!covers) store(next ? 'yes' : 'no');
    },
    [covers, store],
  );
  const enter = useCallback(() => {
    cameFrom.current = document.activeElement;
    setTakesFocus(true);
    setOpen(true);
  }, [setOpen]);
  /** `leaves`: the focus goes elsewhere than where it came from. */
  const close = useCallback(
    ({ leaves = false } = {}) => {
      const focused = box.current?.contains(document.activeElement) ?? false;
      setTakesFocus(false);
      setOpen(false);
      // What it covers can take the focus only when it no longer is covered.
      if (!focused || leaves) return;
      requestAnimationFrame(() => {
        const { activeElement, body } = document;
        if (activeElement !== body && !box.current?.contains(activeElement)) return;
        const from = cameFrom.current;
        if (from instanceof HTMLElement && from.isConnected && from !== document.body) {
          from.focus({ preventScroll: true });
        } else transcript.current?.focus();
      });
    },
    [setOpen, transcript],
  );
  /** Something is to be shown in it. Where both are in view, the focus stays where it is. */
  const show = useCallback(() => {
    if (covers) enter();
    else setOpen(true);
  }, [covers, enter, setOpen]);

  const onKey = () => {
    const panel = box.current;
    if (!open) enter();
    else if (panel?.contains(document.activeElement)) close();
    else {
      cameFrom.current = document.activeElement;
      // While it loads there is none: then it is given the focus once it is there.
      setTakesFocus(true);
      (logIn(panel) ?? panel)?.focus();
    }
  };
  useShortcuts({ 'transcript.log': onKey });

  useEffect(() => {
    const panel = box.current;
    if (open && takesFocus && !panel?.contains(document.activeElement)) panel?.focus();
  }, [open, takesFocus]);

  // Who goes elsewhere while it loads, or later, is not called back.
  useEffect(() => {
    if (!takesFocus) return;
    const left = ({ target, relatedTarget }: FocusEvent) => {
      const panel = box.current;
      if (!panel?.contains(target as Node) || panel.contains(relatedTarget as Node | null)) return;
      // another window in front is no leaving
      if (document.hasFocus()) setTakesFocus(false);
    };
    document.addEventListener('focusout', left);
    return () => document.removeEventListener('focusout', left);
  }, [takesFocus]);

  return { id, box, open, covers, takesFocus, toggle: open ? () => close() : enter, show, close };
}

function logIn(panel: HTMLElement | null): HTMLElement | null {
  return panel?.querySelector<HTMLElement>('[role="log"]') ?? null;
}
