'use client';

import { X } from 'lucide';
import { useEffect } from 'react';
import { Icon } from './icon';
import { OVERLAY } from './in-view';
import { Phrase } from './name';

const SHOWN_MS = 10_000;

/** Error message for a failure outside the visible part of the page. Disappears after ten seconds. */
export function Toast({ text, onClose }: { text: string | null; onClose: () => void }) {
  useEffect(() => {
    if (text === null) return;
    const timer = setTimeout(onClose, SHOWN_MS);
    return () => clearTimeout(timer);
  }, [text, onClose]);
  return (
    <div role="alert" className="relative">
      {text !== null && (
        <p
          {...OVERLAY}
          className="absolute right-4 bottom-2 left-4 z-20 mx-auto flex max-w-prose items-start gap-3 rounded-md bg-ink px-3 py-2 text-ground text-xs shadow-lg"
        >
          <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">
            <Phrase text={text} />
          </span>
          <button type="button" aria-label="Dismiss" onClick={onClose} className="hit mt-0.5 shrink-0">
            <Icon of={X} size={13} />
          </button>
        </p>
      )}
    </div>
  );
}
