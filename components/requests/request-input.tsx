'use client';

import { clsx } from 'clsx';
import { type ReactNode, type Ref, type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { rowsInView } from '@/components/ui/in-view';
import { useExclusiveKeys } from '@/components/ui/shortcuts/use-shortcuts';
import { FoldedPartsContext, UNFOLDS, useFoldedParts } from '@/components/ui/unfold';

/** What is left to do before an input has been seen. */
export type InputGate = 'open' | 'folded' | 'scroll';

/**
 * All of what is asked for, its head first, in a box that scrolls where it is long.
 *
 * @param size in words
 * @param head where the box begins, wherever its input was scrolled to
 * @param onGate told what is left to see. Once all has been seen, it was seen: `onRead` is called
 */
export function RequestInput(props: {
  size: string;
  pinned: boolean;
  head: Ref<HTMLDivElement>;
  onRead: () => void;
  onGate: (gate: InputGate) => void;
  children: ReactNode;
}) {
  const { size, pinned, head, onRead, onGate, children } = props;
  const box = useRef<HTMLDivElement>(null);
  const shown = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useExclusiveKeys(box, scrolls);
  const { parts, isAnyFolded } = useFoldedParts(box);
  const onLook = useCallback(
    (isAllSeen: boolean) => {
      const { scrollHeight = 0, clientHeight = 0 } = box.current ?? {};
      setScrolls(scrollHeight > clientHeight + 1);
      // Looked at again when the last fold is open, and asked at once for one that has just come.
      if (isAnyFolded || parts.isAnyFolded) return;
      onGate(isAllSeen ? 'open' : 'scroll');
      if (isAllSeen) onRead();
    },
    [parts, isAnyFolded, onGate, onRead],
  );
  useSeenInFull(shown, onLook);

  useEffect(() => {
    onGate(isAnyFolded ? 'folded' : 'scroll');
  }, [isAnyFolded, onGate]);

  return (
    <div className="mt-1.5 pl-5">
      <p className="mb-0.5 text-2xs text-ink-3">Input, exactly as given: {size}</p>
      <div className="relative">
        <div ref={head} aria-hidden="true" className="pointer-events-none absolute inset-x-0 top-0 h-6" />
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields */}
        <div
          ref={box}
          role="group"
          aria-label="Input"
          // A box that scrolls must be reachable by keyboard.
          tabIndex={scrolls ? 0 : undefined}
          className={clsx(
            'overflow-y-auto rounded border border-line-strong bg-ground px-2.5 py-1.5 text-xs',
            pinned ? 'max-h-[max(84px,18dvh)]' : 'max-h-60',
          )}
        >
          <div ref={shown}>
            <FoldedPartsContext value={parts}>{children}</FoldedPartsContext>
          </div>
        </div>
      </div>
    </div>
  );
}

const LOOK_AGAIN_MS = 100;

/**
 * Tells whenever something was looked at whether every stretch of it has been in sight, at once or one after another.
 * Its end alone says nothing: a page that follows its own end shows that of what nobody has seen the head of.
 */
function useSeenInFull(shown: RefObject<HTMLElement | null>, onLook: (isAllSeen: boolean) => void): void {
  const [seen] = useState(() => new SeenRanges());

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

/** What is seen may be off by this where a browser rounds to whole pixels. */
const ROUNDED_PX = 1;

/** Which stretches of something tall have been in sight, in pixels from its top, whenever that was. */
export class SeenRanges {
  #width = 0;
  #stretches: readonly (readonly [from: number, to: number])[] = [];

  /** @param width of the whole: in another one its lines wrap elsewhere, and none stands where it was seen */
  see(from: number, to: number, width: number): void {
    if (Math.abs(width - this.#width) > ROUNDED_PX) this.#stretches = [];
    this.#width = width;
    if (to <= from) return;
    const touches = ([start, end]: readonly [number, number]) => start <= to + ROUNDED_PX && end >= from - ROUNDED_PX;
    const joined = this.#stretches.filter(touches);
    const rest = this.#stretches.filter((stretch) => !touches(stretch));
    const start = Math.min(from, ...joined.map(([first]) => first));
    const end = Math.max(to, ...joined.map(([, last]) => last));
    this.#stretches = [...rest, [start, end]];
  }

  isAllSeen(height: number): boolean {
    return this.#stretches.some(([from, to]) => from <= ROUNDED_PX && to >= height - ROUNDED_PX);
  }
}
