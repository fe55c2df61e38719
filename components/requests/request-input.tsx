'use client';

import { clsx } from 'clsx';
import { type ReactNode, type Ref, useCallback, useEffect, useRef, useState } from 'react';
import { FoldedPartsContext, useFoldedParts } from '@/components/ui/folded-parts';
import { useOwnKeys } from '@/components/ui/shortcuts/use-shortcuts';
import { useSeenAll } from './use-seen-all';

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
  useOwnKeys(box, scrolls);
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
  useSeenAll(shown, onLook);

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
