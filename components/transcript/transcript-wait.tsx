'use client';

import { useEffectEvent, useLayoutEffect, useRef, useState } from 'react';

interface TranscriptWaitProps {
  /** Why it is not there; null while nothing has gone wrong. */
  error: Error | null;
  isLoading: boolean;
  retry: () => void;
  /** It is there, and whoever asked for it once more by keyboard goes on in it. */
  onCome: () => void;
}

/** In the place of a transcript that is too much to come with its page, until it is there. */
export function TranscriptWait({ error, isLoading, retry, onCome }: TranscriptWaitProps) {
  const box = useRef<HTMLDivElement>(null);
  /** Its button stays where it is while it is tried: the focus is on it. */
  const [wasAsked, setWasAsked] = useState(false);
  const come = useEffectEvent(onCome);
  useLayoutEffect(() => {
    const own = box.current;
    return () => {
      if (own === null || !own.contains(document.activeElement)) return;
      requestAnimationFrame(() => come());
    };
  }, []);
  return (
    <div
      ref={box}
      aria-busy={isLoading}
      className="min-h-0 w-full max-w-[960px] flex-1 space-y-1.5 self-center overflow-y-auto px-6 py-4 text-xs sm:pl-[84px]"
    >
      <p role="status" className="text-ink-3">
        {isLoading
          ? 'Loading the transcript, which is too long to come with the page…'
          : 'The transcript is not loaded.'}
      </p>
      {error !== null && (
        <p className={isLoading ? 'text-waiting' : 'text-failed'}>
          {error.message}
          {isLoading && ' The page tries again by itself.'}
        </p>
      )}
      {(wasAsked || !isLoading) && (
        <button
          type="button"
          aria-disabled={isLoading}
          onClick={() => {
            if (isLoading) return;
            setWasAsked(true);
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
