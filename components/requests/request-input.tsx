'use client';

import { clsx } from 'clsx';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { FoldedPartsContext, useFoldedParts } from '@/components/ui/folded-parts';

/** What is left to do before an input has been seen. */
export type InputGate = 'open' | 'folded' | 'scroll';

/**
 * All of what is asked for, its head first, in a box that scrolls where it is long.
 *
 * @param size in words
 * @param onGate told what is left to see. Once all has been seen, it was seen: `onRead` is called
 */
export function RequestInput(props: {
  size: string;
  pinned: boolean;
  onRead: () => void;
  onGate: (gate: InputGate) => void;
  children: ReactNode;
}) {
  const { size, pinned, onRead, onGate, children } = props;
  const box = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  const { parts, isAnyFolded } = useFoldedParts();

  useEffect(() => {
    if (isAnyFolded) onGate('folded');
    if (end.current === null) return;
    // A new one for each state of the folds: it looks again once what was unfolded is laid out.
    const observer = new IntersectionObserver(
      (entries) => {
        const { scrollHeight = 0, clientHeight = 0 } = box.current ?? {};
        setScrolls(scrollHeight > clientHeight + 1);
        const isAtEnd = (entries.at(-1)?.intersectionRatio ?? 0) >= 0.5;
        if (parts.isAnyFolded) return;
        onGate(isAtEnd ? 'open' : 'scroll');
        if (isAtEnd) onRead();
      },
      { threshold: [0, 0.5, 1] },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [isAnyFolded, parts, onGate, onRead]);

  return (
    <div className="mt-1.5 pl-5">
      <p className="mb-0.5 text-2xs text-ink-3">Input, exactly as given: {size}</p>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields */}
      <div
        ref={box}
        role="group"
        aria-label="Input"
        // A box that scrolls must be reachable by keyboard.
        tabIndex={scrolls ? 0 : undefined}
        data-own-keys={scrolls || undefined}
        className={clsx(
          'overflow-y-auto rounded border border-line-strong bg-ground px-2.5 py-1.5 text-xs',
          pinned ? 'max-h-[max(84px,18dvh)]' : 'max-h-60',
        )}
      >
        <FoldedPartsContext value={parts}>{children}</FoldedPartsContext>
        <div ref={end} aria-hidden="true" className="h-px" />
      </div>
    </div>
  );
}
