'use client';

import { type RefObject, useEffect, useState } from 'react';
import { rowsInView } from '@/components/ui/in-view';
import { UNFOLDS } from '@/components/ui/unfold';
import { SeenStretches } from './seen-stretches';

const LOOK_AGAIN_MS = 100;

/**
 * Tells whenever something was looked at whether every stretch of it has been in sight, at once or one after another.
 * Its end alone says nothing: a page that follows its own end shows that of what nobody has seen the head of.
 */
export function useSeenAll(shown: RefObject<HTMLElement | null>, onLook: (isAllSeen: boolean) => void): void {
  const [seen] = useState(() => new SeenStretches());

  useEffect(() => {
    const element = shown.current;
    if (element === null) return;
    let soon: ReturnType<typeof setTimeout> | undefined;
    // No event tells when something that covers it goes away.
    const lookSoon = () => {
      clearTimeout(soon);
      soon = setTimeout(look, LOOK_AGAIN_MS);
    };
    const note = (entries: readonly IntersectionObserverEntry[]) => {
      if (entries.length === 0) return;
      const { width, height, top } = element.getBoundingClientRect();
      // What is below the first fold moves when that is opened, so it is not yet seen for good.
      const fold = element.querySelector(`[${UNFOLDS}]`)?.getBoundingClientRect().top ?? Number.POSITIVE_INFINITY;
      for (const { boundingClientRect: whole, intersectionRect: part } of entries) {
        const isAsItIs = Math.abs(whole.height - height) <= 1 && Math.abs(whole.width - width) <= 1;
        if (!isAsItIs) continue;
        let hidden = part.height;
        for (const [from, to] of rowsInView(element, part)) {
          seen.see(from - whole.top, Math.min(to - whole.top, fold - top), width);
          hidden -= to - from;
        }
        if (hidden > 1) lookSoon();
      }
      onLook(seen.isAllSeen(height));
    };
    const sight = new IntersectionObserver(note, { threshold: [0, 0.25, 0.5, 0.75, 1] });
    // It tells of its own accord how much is in sight, not which stretch of what is taller than its box.
    const look = () => {
      // What was seen in the frame before may not have been told yet, and would be dropped.
      note(sight.takeRecords());
      sight.unobserve(element);
      sight.observe(element);
    };
    const size = new ResizeObserver(look);
    size.observe(element);
    const listening = new AbortController();
    const { signal } = listening;
    // Any box around it may scroll, and such events don't bubble.
    document.addEventListener('scroll', look, { capture: true, passive: true, signal });
    window.addEventListener('resize', look, { signal });
    for (const type of ['resize', 'scroll']) visualViewport?.addEventListener(type, look, { signal });
    return () => {
      sight.disconnect();
      size.disconnect();
      listening.abort();
      clearTimeout(soon);
    };
  }, [shown, seen, onLook]);
}
