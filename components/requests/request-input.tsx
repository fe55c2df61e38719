'use client';

import { clsx } from 'clsx';
import { type ReactNode, type Ref, type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { rowsInView } from '@/components/ui/in-view';
import { useExclusiveKeys } from '@/components/ui/shortcuts/use-shortcuts';
import { FoldedPartsContext, UNFOLDS, useFoldedParts } from '@/components/ui/unfold';

/** The action still required before the input counts as seen. */
export type InputGate = 'open' | 'folded' | 'scroll';

/**
 * The whole input of a request, in a box that scrolls if it is long.
 *
 * @param head marks the top of the box, for visibility
 * @param onRead called once everything has been seen
 * @param onGate called when the required action changes
 */
export function RequestInput(props: {
  size: string | null;
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
  const onCheck = useCallback(
    (isAllSeen: boolean) => {
      const { scrollHeight = 0, clientHeight = 0 } = box.current ?? {};
      setScrolls(scrollHeight > clientHeight + 1);
      // Also reads the current value, because `isAnyFolded` is from the last render.
      if (isAnyFolded || parts.isAnyFolded) return;
      onGate(isAllSeen ? 'open' : 'scroll');
      if (isAllSeen) onRead();
    },
    [parts, isAnyFolded, onGate, onRead],
  );
  useSeenInFull(shown, onCheck);

  useEffect(() => {
    onGate(isAnyFolded ? 'folded' : 'scroll');
  }, [isAnyFolded, onGate]);

  return (
    <div className="mt-1.5 pl-5">
      {size !== null && <p className="mb-0.5 text-2xs text-ink-3">Exact input: {size}</p>}
      <div className="relative">
        <div ref={head} aria-hidden="true" className="pointer-events-none absolute inset-x-0 top-0 h-6" />
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields */}
        <div
          ref={box}
          role="group"
          aria-label="Input"
          // A scrollable box must be reachable by keyboard.
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

const RECHECK_MS = 100;

/**
 * Reports, on every change of visibility, whether all of an element has been in sight at some time. Seeing its end is not
 * enough, because a page that follows its end shows it without its beginning.
 */
export function useSeenInFull(shown: RefObject<HTMLElement | null>, onCheck: (isAllSeen: boolean) => void): void {
  const [seen] = useState(() => new SeenRanges());

  useEffect(() => {
    const element = shown.current;
    if (element === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // No event fires when an overlay disappears.
    const checkSoon = () => {
      clearTimeout(timer);
      timer = setTimeout(check, RECHECK_MS);
    };
    const note = (entries: readonly IntersectionObserverEntry[]) => {
      if (entries.length === 0) return;
      const { width, height, top } = element.getBoundingClientRect();
      // Opening the first fold moves everything below it, so only the part above counts.
      const fold = element.querySelector(`[${UNFOLDS}]`)?.getBoundingClientRect().top ?? Number.POSITIVE_INFINITY;
      for (const { boundingClientRect: box, intersectionRect: part } of entries) {
        const isAsItIs = Math.abs(box.height - height) <= 1 && Math.abs(box.width - width) <= 1;
        if (!isAsItIs) continue;
        let hidden = part.height;
        for (const [from, to] of rowsInView(element, part)) {
          seen.see(from - box.top, Math.min(to - box.top, fold - top), width);
          hidden -= to - from;
        }
        if (hidden > 1) checkSoon();
      }
      onCheck(seen.isAllSeen(height));
    };
    const sight = new IntersectionObserver(note, { threshold: [0, 0.25, 0.5, 0.75, 1] });
    // IntersectionObserver reports changes of the visible share only, not which part of a tall element is visible.
    const check = () => {
      // `unobserve` would drop pending entries.
      note(sight.takeRecords());
      sight.unobserve(element);
      sight.observe(element);
    };
    const size = new ResizeObserver(check);
    size.observe(element);
    const listening = new AbortController();
    const { signal } = listening;
    // Captures the scroll events of all ancestors, which don't bubble.
    document.addEventListener('scroll', check, { capture: true, passive: true, signal });
    window.addEventListener('resize', check, { signal });
    for (const type of ['resize', 'scroll']) window.visualViewport?.addEventListener(type, check, { signal });
    return () => {
      sight.disconnect();
      size.disconnect();
      listening.abort();
      clearTimeout(timer);
    };
  }, [shown, seen, onCheck]);
}

/** Browsers round to whole pixels. */
const ROUNDED_PX = 1;

/** Vertical ranges of an element that have been in sight at some time, in pixels from its top. */
export class SeenRanges {
  #width = 0;
  #ranges: readonly (readonly [from: number, to: number])[] = [];

  /** @param width of the element. A new width rewraps its lines and resets the ranges */
  see(from: number, to: number, width: number): void {
    if (Math.abs(width - this.#width) > ROUNDED_PX) this.#ranges = [];
    this.#width = width;
    if (to <= from) return;
    const touches = ([start, end]: readonly [number, number]) => start <= to + ROUNDED_PX && end >= from - ROUNDED_PX;
    const joined = this.#ranges.filter(touches);
    const rest = this.#ranges.filter((range) => !touches(range));
    const start = Math.min(from, ...joined.map(([first]) => first));
    const end = Math.max(to, ...joined.map(([, last]) => last));
    this.#ranges = [...rest, [start, end]];
  }

  isAllSeen(height: number): boolean {
    return this.#ranges.some(([from, to]) => from <= ROUNDED_PX && to >= height - ROUNDED_PX);
  }
}
