'use client';

import { type ReactNode, useId, useRef, useState } from 'react';
import { CodeOnDemand, OnDemand } from './on-demand';
import type { TermName } from './terms';

const panelCode = new CodeOnDemand(async () => (await import('./term-panel')).TermPanel);

/**
 * A word with an explanation: under the pointer or focus as a tooltip, and after a press or tap as a popover with a link
 * to all words. Use it once in a view, or pass `skipped`. Don't use it in a button or link.
 *
 * @param props.skipped true to skip it in the tab order where it repeats. Keyboard users find it on `/help`
 */
export function Term(props: { of: TermName; skipped?: boolean; children: ReactNode }) {
  const { of, skipped = false, children } = props;
  const [shows, setShows] = useState<'tooltip' | 'popover' | null>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const peek = () => setShows((now) => now ?? 'tooltip');
  const leave = () => setShows((now) => (now === 'tooltip' ? null : now));
  return (
    <>
      <button
        ref={button}
        type="button"
        tabIndex={skipped ? -1 : undefined}
        aria-haspopup="dialog"
        aria-expanded={shows === 'popover'}
        aria-describedby={shows === 'tooltip' ? id : undefined}
        onPointerEnter={({ pointerType }) => pointerType === 'mouse' && peek()}
        onPointerLeave={leave}
        // Not on every focus: a popover moves the focus to its first button.
        onKeyUp={({ key }) => key === 'Tab' && peek()}
        onBlur={leave}
        onClick={() => setShows((now) => (now === 'popover' ? null : 'popover'))}
        className="hit cursor-help underline decoration-line-strong decoration-dotted underline-offset-[3px] hover:decoration-ink-3"
      >
        {children}
      </button>
      {shows !== null && (
        <OnDemand
          code={panelCode}
          name="The explanation"
          props={{ of, id, button, isTooltip: shows === 'tooltip', onClose: () => setShows(null) }}
        />
      )}
    </>
  );
}
