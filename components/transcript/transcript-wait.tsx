'use client';

import { useEffectEvent, useLayoutEffect, useRef, useState } from 'react';

interface TranscriptWaitProps {
  /** The reason loading failed; null unless it did. */
  error: Error | null;
  isLoading: boolean;
  retry: () => void;
  /** Called when the transcript has loaded and the retry button had the focus. */
  onCome: () => void;
}

/** Stands in for a transcript that is too large for the page's markup, until it has loaded. */
export function TranscriptWait({ error, isLoading, retry, onCome }: TranscriptWaitProps) {
  const box = useRef<HTMLDivElement>(null);
  /** The retry button keeps the focus during an attempt. */
  const [wasPressed, setWasPressed] = useState(false);
  const focusNext = useEffectEvent(onCome);
  useLayoutEffect(() => {
    const own = box.current;
    return () => {
      if (own === null || !own.contains(document.activeElement)) return;
      requestAnimationFrame(() => focusNext());
    };
  }, []);
  return (
    <div
      ref={box}
      aria-busy={isLoading}
      className="session-column min-h-0 w-full flex-1 space-y-1.5 overflow-y-auto py-4 text-xs"
    >
      <p role="status" className="text-ink-3">
        {isLoading ? 'Loading the transcript…' : 'The transcript could not be loaded.'}
      </p>
      {error !== null && (
        <p className={isLoading ? 'text-waiting' : 'text-failed'}>
          {error.message}
          {isLoading && ' Retrying automatically.'}
        </p>
      )}
      {(wasPressed || !isLoading) && (
        <button
          type="button"
          aria-disabled={isLoading}
          onClick={() => {
            if (isLoading) return;
            setWasPressed(true);
            retry();
          }}
          className="text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink aria-disabled:text-ink-3 aria-disabled:no-underline"
        >
          Try again
        </button>
      )}
    </div>
  );
}
